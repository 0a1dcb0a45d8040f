CREATE TABLE IF NOT EXISTS profiles (
  subject    text PRIMARY KEY,
  email      text,
  first_name text,
  last_name  text,
  -- Time of the user's action, by the producer's clock. Older events change nothing.
  changed_at timestamptz NOT NULL,
  -- A deleted user leaves only subject and time, no personal data. Without them a late update would
  -- restore the profile.
  is_deleted boolean NOT NULL DEFAULT false,
  CHECK (is_deleted = (num_nonnulls(email, first_name, last_name) = 0))
);
