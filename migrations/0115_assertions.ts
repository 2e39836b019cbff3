/** Authenticators serve: checks of them that issuers ask for, and the lock-out of codes that can be guessed. */
const statements: ReadonlyArray<string> = [
  `create table authenticator_assertions (
    id uuid primary key,
    issuer text not null,
    subject text not null,
    -- Null where the issuer has no such person: that assertion is refused like any other.
    person_id text,
    -- By what failures are counted: a hash of the person, or of issuer and subject where there is none.
    subject_key bytea not null check (octet_length(subject_key) = 32),
    rp_id text not null,
    origins text[] not null,
    user_verification text not null check (user_verification in ('required', 'preferred')),
    -- The SHA-256 of the challenge; null once it was answered.
    challenge bytea check (octet_length(challenge) = 32),
    state text not null check (state in ('pending', 'passed', 'failed')),
    version integer not null,
    refused integer not null default 0,
    created_at timestamptz not null,
    expires_at timestamptz not null
  ) with (fillfactor = 80)`,
  `create index authenticator_assertions_expires on authenticator_assertions (expires_at)`,
  // Each kind of code has a row of its own: one that is locked leaves the person's other authenticators usable.
  `create table authenticator_lockouts (
    subject_key bytea not null check (octet_length(subject_key) = 32),
    kind text not null,
    version integer not null,
    -- Refusals in a row.
    failed integer not null,
    locked_until timestamptz,
    changed_at timestamptz not null,
    primary key (subject_key, kind)
  ) with (fillfactor = 80)`,
  `create index authenticator_lockouts_changed on authenticator_lockouts (changed_at)`,
]

export default statements
