/** Who may do what: every operation on institutions, projects and reviews against every kind of caller. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import { EmbeddedIssuer } from "../../../src/embedded/EmbeddedIssuer.ts"
import { institution, issuer, member, owner, person, project } from "../../support/TestIdentity.ts"
import { tokenFor } from "../../support/TestTokens.ts"
import { askAccess } from "../../services/access/RequestWorld.ts"
import { call, post, served } from "./RequestServer.ts"

const reason = "as we agreed on Monday"

const cast = Effect.gen(function* () {
  const fern = yield* institution()
  const elsewhere = yield* institution()
  const who = {
    outsider: yield* person(),
    foreign: yield* person(),
    member: yield* person(),
    sponsor: yield* person(),
    administrator: yield* person(),
    late: yield* person(),
    suspended: yield* person(),
    operator: yield* person({ operator: true }),
    owner: yield* person(),
  }
  yield* member(elsewhere, who.foreign, "administrator")
  yield* member(fern, who.member, "member")
  yield* member(fern, who.sponsor, "sponsor")
  yield* member(fern, who.administrator, "administrator")
  yield* member(fern, who.late, "administrator", { effective_from: "2150-01-01T00:00:00Z" })
  yield* member(fern, who.suspended, "administrator", { state: "suspended" })
  return { fern, who }
})
type Cast = Effect.Success<typeof cast>
type Role = keyof Cast["who"]

const ours = Effect.fnUntraced(function* ({ fern, who }: Cast) {
  const id = yield* project(fern, { state: "registered" })
  yield* owner(id, who.owner)
  return id
})

/** An operation on something new each time, so that one caller does not stand in another's way. */
interface Operation {
  readonly of: (cast: Cast) => Effect.Effect<{ readonly path: string; readonly body: object }, unknown, Needs>
  readonly answers: Readonly<Record<Role, string>>
}
type Needs = Effect.Services<ReturnType<typeof ours>> | Effect.Services<ReturnType<typeof askAccess>>

const no = "403 role_required"
const notYet = "403 administrator_not_effective"
const unseen = "404 not_found"

const inInstitution = {
  ...{ outsider: unseen, foreign: unseen, member: no, sponsor: "201", administrator: "201" },
  ...{ late: notYet, suspended: notYet, operator: unseen, owner: unseen },
}

const operations: Readonly<Record<string, Operation>> = {
  "register a website": {
    of: ({ fern, who }) =>
      Effect.succeed({
        path: `/v1/institutions/${fern}/websites`,
        body: {
          ...{ name: "Site", website: `https://${randomUUID()}.example`, owner_person_id: who.owner, reason },
          ...{ environment: "staging", requested_scopes: ["openid"] },
        },
      }),
    answers: inInstitution,
  },
  "enroll somebody": {
    of: ({ fern }) =>
      Effect.succeed({ path: `/v1/institutions/${fern}/enrollments`, body: { recipient: "a@b.example", reason } }),
    answers: inInstitution,
  },
  "change a membership": {
    of: Effect.fnUntraced(function* ({ fern }) {
      const person_id = yield* person()
      return {
        path: `/v1/institutions/${fern}/memberships`,
        body: { person_id, role: "member", state: "active", reason },
      }
    }),
    answers: inInstitution,
  },
  "withdraw a website": {
    of: Effect.fnUntraced(function* (cast) {
      const id = yield* ours(cast)
      return {
        path: `/v1/institutions/${cast.fern}/websites/${id}/withdraw`,
        body: { expected_version: 1, reason },
      }
    }),
    answers: {
      ...{ outsider: unseen, foreign: unseen, member: no, sponsor: no, administrator: "200" },
      ...{ late: notYet, suspended: notYet, operator: no, owner: "200" },
    },
  },
  "change an owner": {
    of: Effect.fnUntraced(function* (cast) {
      const id = yield* ours(cast)
      return { path: `/v1/projects/${id}/owners`, body: { person_id: cast.who.member, reason } }
    }),
    answers: {
      ...{ outsider: unseen, foreign: unseen, member: no, sponsor: no, administrator: "200" },
      ...{ late: notYet, suspended: notYet, operator: no, owner: no },
    },
  },
  "propose a launch": {
    of: Effect.fnUntraced(function* (cast) {
      const id = yield* ours(cast)
      return { path: `/v1/projects/${id}/launch-proposals`, body: { launch_url: "https://fern.example/", reason } }
    }),
    answers: {
      ...{ outsider: unseen, foreign: unseen, member: no, sponsor: no, administrator: no },
      ...{ late: no, suspended: no, operator: no, owner: "201" },
    },
  },
  "approve as administrator": {
    of: Effect.fnUntraced(function* (cast) {
      const asked = yield* askAccess(cast.fern, yield* ours(cast), yield* person())
      return {
        path: `/v1/policies/reviews/${asked.policy_review!.review_id}/approve`,
        body: { role: "administrator", reason },
      }
    }),
    answers: {
      ...{ outsider: unseen, foreign: unseen, member: no, sponsor: no, administrator: "200" },
      ...{ late: notYet, suspended: notYet, operator: no, owner: unseen },
    },
  },
  "decline as sponsor": {
    of: Effect.fnUntraced(function* (cast) {
      const asked = yield* askAccess(cast.fern, yield* ours(cast), yield* person())
      return {
        path: `/v1/policies/reviews/${asked.policy_review!.review_id}/decline`,
        body: { role: "sponsor", reason },
      }
    }),
    answers: {
      ...{ outsider: unseen, foreign: unseen, member: no, sponsor: "200", administrator: no },
      ...{ late: "403 membership_not_active", suspended: "403 membership_not_active", operator: no, owner: unseen },
    },
  },
  "make a person": {
    of: () => Effect.succeed({ path: "/v1/people", body: { issuer, subject: randomUUID(), reason } }),
    answers: {
      ...{ outsider: no, foreign: no, member: no, sponsor: no, administrator: no },
      ...{ late: no, suspended: no, operator: "201", owner: no },
    },
  },
}

layer(served, { excludeTestServices: true, timeout: "60 seconds" })("who may", (it) => {
  for (const [name, { answers, of }] of Object.entries(operations)) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const all = yield* cast
        const told: Record<string, string> = {}
        for (const role of Object.keys(answers) as ReadonlyArray<Role>) {
          const { body, path } = yield* of(all)
          const { body: answer, status } = yield* post(all.who[role], path, body)
          told[role] = answer.code === undefined ? String(status) : `${status} ${answer.code}`
        }
        assert.deepStrictEqual(told, answers)
      }))

    it.effect(`${name}: without a token, or with one that is not for this`, () =>
      Effect.gen(function* () {
        const all = yield* cast
        const { body, path } = yield* of(all)
        const someone = all.who.administrator
        const mint = (yield* EmbeddedIssuer).mintAccessToken
        const bad = [
          null,
          yield* tokenFor(someone, { audience: "service-lifecycle" }),
          yield* tokenFor(someone, { ttl: "-2 minutes" }),
          yield* mint({ issuer, subject: "nobody", clientId: "portal" }),
        ]
        for (const token of bad) {
          const headers = { "idempotency-key": randomUUID(), ...(token && { authorization: `Bearer ${token}` }) }
          const { body: answer, headers: told, status } = yield* call("POST", path, headers, body)
          assert.deepStrictEqual([status, answer.code], [401, "invalid_token"])
          assert.match(told.get("www-authenticate") ?? "", /^Bearer/)
        }
      }))
  }
})
