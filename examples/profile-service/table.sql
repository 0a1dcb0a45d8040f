CREATE TABLE IF NOT EXISTS profiles (
  subject    text PRIMARY KEY,
  email      text,
  first_name text,
  last_name  text,
  -- When the user did what the row shows, by the producer's clock. Older events change nothing.
  changed_at timestamptz NOT NULL,
  -- A deleted user leaves subject and moment, nothing personal: without them a late update would
  -- bring the profile back.
  is_deleted boolean NOT NULL DEFAULT false,
  CHECK (is_deleted = (num_nonnulls(email, first_name, last_name) = 0))
);
