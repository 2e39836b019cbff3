/**
 * The directory's kind `access`: which person may use which project. The feed cannot undo a decision that was made
 * here.
 */
import { Effect, Schema } from "effect"
import { AccessId, PersonId } from "../../schemas/BrandedIds.ts"
import * as Feed from "../../schemas/identity/IdentityDirectory.ts"
import type { Kind } from "../directory/Directory.ts"
import { persons } from "../people/PersonAudience.ts"
import { Database } from "../platform/database/Database.ts"
import { AccessVersions } from "./AccessVersions.ts"

const written = Schema.decodeUnknownSync(Schema.Struct({ id: AccessId }))

/** Registers with `Directory.layer`, after people and projects. */
export const accessKinds = Effect.gen(function* () {
  const { sql } = yield* Database
  const versions = yield* AccessVersions
  const people = persons(sql)

  const kinds: ReadonlyArray<Kind> = [{
    kind: "access",
    table: "access",
    ids: "text",
    fields: Feed.AccessFields,
    columns: { institution_id: "text", project_id: "text", person_id: "text", role: "text", state: "text" },
    stamped: ["created_at"],
    set: {
      revision: "t.revision + 1",
      // A removal revokes any Access; an Access that was revoked here stays revoked until the feed sends that as well.
      state: `case when excluded.removed then 'revoked'
        when t.state_decided and excluded.state is distinct from t.state then t.state else excluded.state end`,
      // What was revoked and is sent anew has no end of before, nor has what moved: its end was decided elsewhere.
      // Another identity of the same person is no other person.
      ends_at: `case when t.state = 'active' and not t.removed and (excluded.removed
        or (t.institution_id, t.project_id, canonical_person(t.person_id)) is not distinct from
          (excluded.institution_id, excluded.project_id, canonical_person(excluded.person_id))) then t.ends_at end`,
      state_decided: `t.state_decided and
        case when excluded.removed then t.state = 'revoked' else excluded.state is distinct from t.state end`,
    },
    history: {
      guard: "kind",
      decided: "state",
      lock: (lines) =>
        people.lock(lines.flatMap(({ fields }) => fields === null ? [] : [PersonId.make(String(fields["person_id"]))])),
      changed: (_, after) => versions.settle(written(after).id),
    },
  }]
  return kinds
})
