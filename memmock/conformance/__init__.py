"""Whether a provider keeps the contract: requests are sent to it, and what comes back is judged by the rules."""
