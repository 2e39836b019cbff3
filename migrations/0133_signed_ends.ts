/**
 * A signed revocation ends exactly the version of an Access that was signed. `access.ends_version`: the only version that
 * `ends_at` ends; null: it ends any. `access.ends_before`: the end that counts for any other version.
 *
 * A program of the version before knows `ends_at` alone, and leaves the two as they are. The trigger clears them for it: with
 * a new version, which the signature says nothing of, and with a new end, which is then the one of any version.
 */
const statements: ReadonlyArray<string> = [
  `alter table access add column ends_version integer, add column ends_before timestamptz`,
  `alter table access_ends add column access_version integer`,
  `create or replace function keep_signed_end() returns trigger language plpgsql as $$
  begin
    if new.ends_at is distinct from old.ends_at then
      new.ends_version := null;
      new.ends_before := null;
    elsif new.access_version is distinct from old.access_version then
      new.ends_at := new.ends_before;
      new.ends_version := null;
      new.ends_before := null;
    end if;
    return new;
  end $$`,
  `create or replace trigger access_signed_end before update of ends_at, access_version on access for each row
    when (old.ends_version is not null and (new.ends_version, new.ends_before) is not distinct from
      (old.ends_version, old.ends_before)
      and (new.ends_at, new.access_version) is distinct from (old.ends_at, old.access_version))
    execute function keep_signed_end()`,
]

export default statements
