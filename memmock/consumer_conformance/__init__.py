"""The checks of a consumer: it is called while a provider plays to it, and what it makes of it is judged."""
