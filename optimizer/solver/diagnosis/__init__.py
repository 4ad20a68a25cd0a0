"""Why there is no plan, and what each limit of a problem costs: both by re-solving with limits changed."""
