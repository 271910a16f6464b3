import make_loans

from hedgerow.cli.main import app

make_loans.write()  # public_loans.csv, which loans_owners.toml names; a plan reads no loan of an owner
print("$ hedgerow plan loans_owners.toml")
app(["plan", "loans_owners.toml"], standalone_mode=False)
