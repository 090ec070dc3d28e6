"""The lab: seasons made of true skills, and pictures of what the systems make of them."""
