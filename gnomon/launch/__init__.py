"""Processes of distributed programs: started by `gnomon launch`, and watched until they end."""
