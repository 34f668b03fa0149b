"""Whether a provider keeps the contract: it is asked, and what comes back is judged by the rules."""
