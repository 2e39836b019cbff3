import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { AccessVersions } from "../../../services/access/AccessVersions.ts"
import { Database } from "../../../services/platform/Database.ts"
import { transact } from "../../../services/platform/Transact.ts"
import {
  access,
  identity,
  institution,
  issuer,
  link,
  member,
  owner,
  person,
  project,
  tell,
} from "../../support/TestIdentity.ts"

interface Version {
  readonly access_version: number
  readonly role: string
  readonly state: string
  readonly kind: string
  readonly project_id: string
}

const versions = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const rows = yield* sql<Version>`
    select v.access_version, v.role, v.state, e.kind, e.project_id
    from access_versions v left join lifecycle_events e on e.id = v.event_id and e.project_id = v.project_id
    where v.access_id = ${id} order by v.access_version`
  return rows.map(({ access_version, kind, role, state }) => [access_version, role, state, kind])
})

const told = Effect.fnUntraced(function* (project: string) {
  const { sql } = yield* Database
  const rows = yield* sql<
    { kind: string }
  >`select kind from lifecycle_events where project_id = ${project} order by position`
  return rows.map(({ kind }) => kind)
})

const scene = Effect.gen(function* () {
  const fern = yield* institution()
  const portal = yield* project(fern)
  const pat = yield* person()
  return { fern, portal, pat }
})

layer(identity)("AccessVersions", (it) => {
  it.effect("each change of the feed is a version with its grant Event; what changes nothing is none", () =>
    Effect.gen(function* () {
      const { fern, pat, portal } = yield* scene
      const id = yield* access(fern, portal, pat)
      yield* access(fern, portal, pat, { id, version: 2 })
      yield* access(fern, portal, pat, { id, version: 3, role: "editor" })
      yield* access(fern, portal, pat, { id, version: 4, role: "editor", state: "revoked" })
      yield* access(fern, portal, pat, { id, version: 5, role: "editor" })
      yield* tell("access", { id, version: 6, removed: true })
      assert.deepStrictEqual(yield* versions(id), [
        [1, "user", "active", "access-granted"],
        [2, "editor", "active", "token-claims-change"],
        [3, "editor", "revoked", "access-revoked"],
        [4, "editor", "active", "access-granted"],
        [5, "editor", "revoked", "access-revoked"],
      ])
      assert.deepStrictEqual(yield* told(portal), [
        "project-registered",
        "project-launched",
        "access-granted",
        "token-claims-change",
        "access-revoked",
        "session-revoked",
        "access-granted",
        "access-revoked",
        "session-revoked",
      ])
    }))
})
void [AccessVersions, transact, createHash, issuer, link, member, owner]
