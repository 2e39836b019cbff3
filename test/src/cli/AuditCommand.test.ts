/**
 * The way from the X-Request-ID of any refusal of the identity API to its audit record, by `cli audit`: one record for
 * each status that the API can answer, soon after the answer, without any secret of the request.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted, Schedule } from "effect"
import { randomUUID } from "node:crypto"
import type { ProjectId } from "../../../schemas/BrandedIds.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { ProviderJobs } from "../../../services/projects/ProviderJobs.ts"
import { run } from "../../../services/platform/database/UnitOfWork.ts"
import { codeOf, reason } from "../../support/Fixtures.ts"
import { home as emptyHome } from "../../support/Processes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { issuer, person } from "../../support/TestIdentity.ts"
import { management } from "../../support/TestManagement.ts"
import { type Answer, as, ask, done, type Headers, secret, send } from "../http/identity/IdentityClient.ts"
import { proposed } from "../http/identity/Catalogue/InstitutionsCases.ts"
import { everyPlace, shapes } from "../http/identity/BodyPaths.ts"
import { stage } from "../http/identity/IdentityStage.ts"
import { lines, slow, type } from "./Terminal.ts"

/** An address without a server. */
const closed = "http://127.0.0.1:1/reg"

interface Recorded {
  readonly id: string
  readonly request_id: string
  readonly route: string | null
  readonly actor: string | null
  readonly status: number | null
  readonly code: string | null
  readonly outcome: string
  readonly details: { readonly request_ids?: ReadonlyArray<string> }
}

/** Secrets in every part of a request that could leak into a record. */
const marked = () => {
  const mark = (name: string) => secret(`${name}-${randomUUID()}`)
  return {
    query: `?token=${mark("query")}`,
    headers: {
      cookie: `mail_session=${mark("cookie")}`,
      "x-portal-binding": mark("binding"),
      referer: `https://portal.example/${mark("referer")}`,
    },
    path: mark("path"),
    body: mark("body"),
  }
}

/** An update with an unknown outcome, of a client whose management address does not answer. */
const unclear = Effect.fnUntraced(function* (projectId: ProjectId) {
  const { sql } = yield* Database
  const now = new Date()
  const jobId = yield* run((yield* ProviderJobs).add({ kind: "client.update", projectId }))
  yield* sql`update provider_jobs set state = 'ambiguous', begun_at = ${now} where id = ${jobId}::uuid`
  yield* sql`
    insert into provider_clients (project_id, reference, client_id, management_uri, expected, expected_digest, made_at)
    values (${projectId}, ${projectId}, ${projectId}, ${`${closed}/one`}, '{}', '', ${now})`
  return jobId
})

layer(
  management({
    MANAGEMENT_READ_RATE: "100000",
    IDENTITY_PROVIDER: JSON.stringify({ registration_endpoint: closed }),
  }, { traced: true }),
  { excludeTestServices: true, timeout: "2 minutes" },
)("cli audit", (it) => {
  it.effect("leads from each failing status of the identity API to one redacted record", () =>
    Effect.gen(function* () {
      const { owner, sql } = yield* Database
      const fixture = yield* stage
      const { administrator, member, operator } = fixture.people
      const busy = yield* person()
      const later = new Date(Date.now() + 3_600_000)
      yield* sql`insert into rate_buckets (key, level, drawn, at, full_at)
        values (${`management.reads:person:${busy}`}, 0, 0, ${later}, ${later})`
      const answers: Array<Answer & { readonly requestId: string; readonly actor: string | null }> = []
      /** One request with its secrets, by a person or without a credential. */
      const fail = Effect.fnUntraced(function* (
        status: number,
        code: string | null,
        who: string | null,
        method: string,
        path: (marks: ReturnType<typeof marked>) => string,
        { body, headers = {}, known = who !== null }: {
          readonly body?: unknown
          readonly headers?: Headers
          readonly known?: boolean
        } = {},
      ) {
        const marks = marked()
        const requestId = `audit.${status}_${answers.length}-${randomUUID()}`
        const auth = who === null ? {} : yield* as(who)
        const answer = yield* send(method, path(marks), {
          ...marks.headers,
          ...auth,
          ...(method === "POST" ? { "idempotency-key": randomUUID() } : {}),
          "x-request-id": requestId,
          ...headers,
        }, body)
        assert.deepStrictEqual(codeOf(answer), [status, code], answer.text)
        assert.strictEqual(answer.headers["x-request-id"], requestId)
        answers.push({ ...answer, requestId, actor: known ? `person:${who}` : null })
      })
      const people = ({ query }: ReturnType<typeof marked>) => `/v1/people${query}`
      const json = { "content-type": "application/json" }
      const someone = { issuer, subject: randomUUID(), reason }
      done(yield* ask(operator, "POST", "/v1/people", someone))
      const { intent_id } = done(
        yield* ask(member, "POST", "/v1/me/credential-actions", { kind: "sessions.revoke_others" }),
      )
      yield* sql`update credential_intents set expires_at = '2001-01-01' where id = ${intent_id}::uuid`
      const { params } = yield* proposed(fixture)
      const approve = `/v1/institutions/${fixture.institution}/access-grant-reviews/${params.review_id}/approve`
      const jobId = yield* unclear(fixture.project)

      yield* fail(400, "malformed_request", operator, "POST", people, {
        body: Uint8Array.of(0x22, 0xff, 0x22),
        headers: json,
      })
      yield* fail(401, "invalid_token", null, "GET", ({ query }) => `/v1/me${query}`, {
        headers: { authorization: `Bearer ${secret(`nonsense-${randomUUID()}`)}` },
      })
      yield* fail(403, "role_required", member, "GET", ({ query }) => `/v1/jobs${query}`)
      yield* fail(404, "not_found", operator, "POST", ({ path }) => `/v1/jobs/${path}/retry`, { body: { reason } })
      yield* fail(404, "not_found", null, "GET", ({ path, query }) => `/v1/${path}/more${query}`)
      yield* fail(405, "method_not_allowed", operator, "DELETE", ({ query }) => `/v1/jobs${query}`, { known: false })
      yield* fail(406, "not_acceptable", operator, "GET", ({ query }) => `/v1/jobs${query}`, {
        headers: { accept: "text/html" },
      })
      yield* fail(409, "person_exists", operator, "POST", people, { body: someone })
      yield* fail(410, "intent_expired", member, "POST", () => `/v1/me/credential-actions/${intent_id}/complete`, {
        body: { proof: { type: "confirm", acknowledged: true } },
      })
      yield* fail(412, "precondition_failed", administrator, "POST", () => approve, {
        body: { reason },
        headers: { "if-match": `"sha256:${"0".repeat(64)}"` },
      })
      yield* fail(413, "body_too_large", operator, "POST", people, {
        body: JSON.stringify({ reason: "x".repeat(300_000) }),
        headers: json,
        known: false,
      })
      yield* fail(415, "unsupported_media_type", operator, "POST", people, {
        body: "<a/>",
        headers: { "content-type": "text/xml" },
        known: false,
      })
      yield* fail(421, "misdirected_request", null, "GET", ({ query }) => `/v1/me${query}`, {
        headers: { host: "elsewhere.example" },
      })
      yield* fail(422, null, operator, "POST", people, { body: { reason: "short", secret: marked().body } })
      yield* fail(429, "rate_limited", busy, "GET", ({ query }) => `/v1/me/sessions${query}`)
      yield* fail(431, "headers_too_large", operator, "GET", () => "/v1/me", {
        headers: { "x-more": secret("h".repeat(9_000)) },
        known: false,
      })
      yield* owner`alter table provider_jobs rename to provider_jobs_away`
      yield* fail(500, "internal", operator, "GET", ({ query }) => `/v1/jobs${query}`)
      yield* owner`alter table provider_jobs_away rename to provider_jobs`
      yield* sql`update installation set state = 'held', held_since = clock_timestamp(), held_reason = 'restored'`
      yield* fail(503, "held", administrator, "POST", () => `/v1/projects/${fixture.project}/owners`, {
        body: { person_id: member, reason },
      })
      yield* sql`update installation set state = 'open', held_since = null, held_reason = null`
      yield* fail(504, "outcome_unknown", operator, "POST", () => `/v1/jobs/${jobId}/reconcile`, { body: { reason } })

      const { ownerUrl, url } = yield* TestDatabase
      const env = { DATABASE_URL: Redacted.value(url), DATABASE_OWNER_URL: Redacted.value(ownerUrl) }
      const home = yield* emptyHome
      const read = (...args: ReadonlyArray<string>) =>
        Effect.map(
          type(home, env, ["audit", ...args]),
          ({ stdout }) => lines(stdout).map((line) => JSON.parse(line) as Recorded),
        )
      const mine = (records: ReadonlyArray<Recorded>, id: string) =>
        records.filter((one) => one.request_id === `client:${id}` || one.details.request_ids?.includes(`client:${id}`))
      const records = yield* read("--since", "10m").pipe(
        Effect.filterOrFail((found) => answers.every(({ requestId }) => mine(found, requestId).length > 0)),
        Effect.retry({ schedule: Schedule.spaced("250 millis"), times: 120 }),
      )
      for (const { actor, body, requestId, status } of answers) {
        const [record, ...others] = mine(records, requestId)
        assert.lengthOf(others, 0, requestId)
        assert.deepInclude(record, { status, actor, outcome: status < 500 ? "refused" : "failed" }, requestId)
        assert.notMatch(JSON.stringify(record), /as we agreed|Bearer|eyJ|@/, requestId)
        if (status === 422) assert.strictEqual(record!.code, "validation_error")
        else assert.deepInclude(record, { id: body.audit_id, code: body.code }, requestId)
      }
      for (const status of [401, 504]) {
        const { requestId } = answers.find((one) => one.status === status)!
        assert.deepStrictEqual(yield* read("--request-id", requestId), mine(records, requestId))
      }
      const places = yield* everyPlace
      const looked = shapes()
      assert.isAbove(looked.length, 100)
      // The search finds text that may be there.
      assert.include(places.get("spans")!, "POST /v1/jobs/{job_id}/retry")
      for (const [place, text] of places) {
        assert.deepStrictEqual(looked.filter((shape) => text.includes(shape)), [], place)
      }
    }), slow)
})
