"""Small servers that speak a store's wire protocol, for stores of which no real server can be had."""
