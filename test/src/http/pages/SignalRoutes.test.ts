/** Security events of identity providers: real tokens, keys over HTTP, the program's own route, and polls. */
import { assert, layer } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Layer, Metric, Result } from "effect"
import { UnsecuredJWT } from "jose"
import type { PersonId } from "../../../../schemas/BrandedIds.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Failpoints, type FaultPoint } from "../../../../services/platform/Failpoints.ts"
import { SignalPolling } from "../../../../services/signals/SignalPolling.ts"
import { ScrapedGauges } from "../../../../services/platform/observability/ScrapedGauges.ts"
import { gaugedPolls } from "../../../../services/signals/SignalGauges.ts"
import { pruneSignals, SignalReceiver } from "../../../../services/signals/SignalReceiver.ts"
import { pruneRefusals, recentRefusals, signalRefusals } from "../../../../services/signals/SignalRefusals.ts"
import { transmitters as parse } from "../../../../src/AppConfig/Parsers.ts"
import { signalChecks } from "../../../../src/doctor/SignalChecks.ts"
import { Server } from "../../../../src/http/Server.ts"
import { SignalPoller } from "../../../../src/workers/SignalPoller.ts"
import { until } from "../../../e2e/support/Until.ts"
import { access, institution, issuer, person, project, tell } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { bearer, type TokenOptions } from "../../../support/TestTokens.ts"
import {
  type Answers,
  audience,
  caep,
  eventClaims,
  type Pair,
  pair,
  risc,
  serving,
  signed,
} from "../../../support/TestTransmitter.ts"

/** `own` names people of `issuer`, `second` may as well, `stranger` only its own, and `polled` is polled. */
const names = ["own", "second", "stranger", "polled"] as const
type Name = (typeof names)[number]

const issuerOf = (name: Name) => name === "own" ? issuer : `https://${name}.example/tenant`
const secretOf = (name: Name) => `${name}-`.padEnd(40, "s")

class Providers extends Context.Service<Providers, {
  readonly keys: Readonly<Record<Name, Pair>>
  readonly paths: Map<string, Answers>
  readonly configuration: string
  readonly url: string
}>()("bailiwick/test/Providers") {
  static readonly layer = Layer.effect(
    Providers,
    Effect.gen(function* () {
      const made = yield* Effect.forEach(
        names,
        (name) => Effect.map(pair(name === "second" ? "RS256" : "ES256", `${name}-1`), (key) => [name, key] as const),
      )
      const keys = Object.fromEntries(made) as Record<Name, Pair>
      const paths = new Map<string, Answers>(
        names.map((name) => [`/${name}/jwks`, () => [200, { keys: [keys[name].jwk] }]]),
      )
      const url = yield* serving(paths)
      const configuration = JSON.stringify(names.map((name) => ({
        issuer: issuerOf(name),
        audience,
        jwks_uri: `${url}/${name}/jwks`,
        ...(name === "polled"
          ? { poll: { endpoint: `${url}/poll`, token: secretOf(name) }, emails: true }
          : { push_token: secretOf(name) }),
        ...(name === "own" || name === "stranger" ? {} : { subject_issuers: [issuer] }),
        ...(name === "own" ? { algorithms: ["ES256"] } : {}),
      })))
      return Providers.of({ keys, paths, configuration, url })
    }),
  )
}

const program = Layer.unwrap(
  Effect.map(Providers, ({ configuration }) => management({ ROLES: "api", SIGNAL_TRANSMITTERS: configuration })),
)
  .pipe(Layer.provideMerge(Providers.layer))

const nowSeconds = () => Math.floor(Date.now() / 1_000)

interface Pushing {
  readonly authorization?: string
  readonly type?: string
}

const post = Effect.fnUntraced(function* (token: string, { authorization, type }: Pushing = {}) {
  const { port } = yield* Server
  const answer = yield* Effect.promise(() =>
    fetch(`http://127.0.0.1:${port}/signals/events`, {
      method: "POST",
      headers: {
        "content-type": type ?? "application/secevent+jwt",
        authorization: authorization ?? `Bearer ${secretOf("own")}`,
      },
      body: token,
    })
  )
  const text = yield* Effect.promise(() => answer.text())
  return { status: answer.status, text, err: answer.status === 400 ? JSON.parse(text).err as string : null }
})

type Claims = ReturnType<typeof eventClaims>
const about = (who: PersonId, type: string, more: Parameters<typeof eventClaims>[3] = {}, by: Name = "own") =>
  eventClaims(issuerOf(by), type, { issuer, subject: who }, more)

const push = Effect.fnUntraced(function* (claims: object, by: Name = "own") {
  const { keys } = yield* Providers
  const token = yield* signed(keys[by], claims)
  return yield* post(token, { authorization: `Bearer ${secretOf(by)}` })
})

/** Whether a sign-in of a minute ago is taken, or another one. */
const signsIn = Effect.fnUntraced(function* (who: PersonId, options: TokenOptions = {}) {
  const { port } = yield* Server
  const headers = yield* bearer(who, { authTime: nowSeconds() - 60, ...options })
  return (yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/v1/me`, { headers }))).status === 200
})

const records = (jti: string) =>
  Effect.flatMap(
    Database,
    ({ sql }) =>
      sql<{ action: string; actor: string; subject: string | null; details: Record<string, unknown> }>`
      select action, actor, subject, details from audit_records where details ->> 'jti' = ${jti}`,
  )

const told = (who: PersonId) =>
  Effect.flatMap(Database, ({ sql }) =>
    Effect.map(
      sql<{ kind: string }>`
        select kind from lifecycle_events where person_id = ${who} and kind not like 'access%' order by position`,
      (rows) => rows.map(({ kind }) => kind),
    ))

const statusOf = (who: PersonId) =>
  Effect.flatMap(
    Database,
    ({ sql }) =>
      Effect.map(sql<{ status: string }>`select status from people where id = ${who}`, ([row]) => row!.status),
  )

/** A person with Access to a project that hears of it. */
const employed = Effect.gen(function* () {
  const fern = yield* institution()
  const ann = yield* person()
  yield* access(fern, yield* project(fern), ann)
  return ann
})

const line = (who: PersonId, version: number, status: string) =>
  tell("person", { id: who, version, issuer, subject: who, display_name: "Ann", status, email_verified: false })

/**
 * All that an event may change. Sessions are written a moment after they were seen, and those of another case may be
 * written meanwhile: this person's ended ones alone are compared.
 */
const everything = (of: PersonId) =>
  Effect.flatMap(
    Database,
    ({ sql }) =>
      sql`select (select jsonb_agg(p order by id) from people p) as people, (select count(*) from session_floors) as floors,
    (select jsonb_agg(s order by id) from sessions s where revoked_at is not null and person_id = ${of}) as sessions, (select count(*) from person_holds) as holds,
    (select count(*) from lifecycle_events) as events, (select count(*) from signal_events) as signals,
    (select count(*) from audit_records where action like 'signal.%') as records`,
  )

const sumOf = (id: string, label: string, value: string) =>
  Effect.map(Metric.snapshot, (all) =>
    all.reduce(
      (sum, metric) =>
        metric.type === "Counter" && metric.id === id && metric.attributes?.[label] === value
          ? sum + Number(metric.state.count)
          : sum,
      0,
    ))

/** How many events this process has counted with this outcome, and with this reason of a refusal. */
const counted = (outcome: string) => sumOf("bailiwick_signals_total", "outcome", outcome)
const refusedAs = (err: string) => sumOf("bailiwick_signals_refused_total", "err", err)

/** Findings of the doctor on these transmitters; `refusals`: those on refused tokens alone, or all others. */
const findings = Effect.fnUntraced(
  function* (signalTransmitters: Parameters<typeof signalChecks>[0]["signalTransmitters"], refusals: boolean) {
    const lines = (yield* signalChecks({ signalTransmitters })).map(({ level, notes }) =>
      `${level} ${notes.map(({ says }) => says).join("; ")}`
    )
    return lines.filter((line) => line.startsWith("warn tokens of ") === refusals)
  },
)

const polling = Effect.fnUntraced(function* () {
  const { configuration } = yield* Providers
  const all = Result.getOrThrow(parse(configuration))
  const receiver = Layer.fresh(SignalReceiver.layer(all))
  const context = yield* Layer.build(Layer.fresh(SignalPolling.layer(all)).pipe(Layer.provideMerge(receiver)))
  const own = Context.get(context, SignalPolling)
  return { polling: own, poll: own.poll, receive: Context.get(context, SignalReceiver).receive, all }
})

layer(program, { excludeTestServices: true, timeout: "2 minutes" })("Signals", (it) => {
  it.effect("a revoked session ends the person's sign-ins so far, is told to products, and has its evidence", () =>
    Effect.gen(function* () {
      const ann = yield* employed
      const other = yield* employed
      const { sql } = yield* Database
      assert.isTrue(yield* signsIn(ann, { sid: "a1" }))
      yield* sql`
        insert into console_sessions (id, hash, issuer, person_id, kid, tokens, created_at, seen_at, ends_at)
        select gen_random_uuid(), sha256('a'), ${issuer}, ${ann}, kid, '\\x02', now() - interval '1 minute', now(),
          now() + interval '1 hour' from vault_keys limit 1`
      const claims = about(ann, caep("session-revoked"), { payload: { event_timestamp: nowSeconds() - 5 } })
      const applied = yield* counted("applied")
      assert.deepStrictEqual(yield* push(claims), { status: 202, text: "", err: null })
      assert.strictEqual(yield* counted("applied"), applied + 1)
      assert.isFalse(yield* signsIn(ann, { sid: "a1" }))
      assert.isFalse(yield* signsIn(ann))
      assert.isTrue(yield* signsIn(ann, { authTime: nowSeconds() - 2 }), "a later sign-in")
      assert.isTrue(yield* signsIn(other))
      assert.isEmpty(yield* sql`select from console_sessions where person_id = ${ann}`)
      assert.deepStrictEqual(yield* told(ann), ["session-revoked"])
      assert.isEmpty(yield* told(other))
      const [record, ...more] = yield* records(claims.jti)
      assert.isEmpty(more)
      assert.deepInclude(record, { action: "signal.applied", actor: `transmitter:${issuer}`, subject: `person:${ann}` })
      assert.deepInclude(record!.details, { event: caep("session-revoked"), result: "end_sessions" })
      assert.match(String(record!.details["digest"]), /^sha256:[0-9a-f]{64}$/)
    }))

  it.effect("a token that comes again, at once, or from a process that was killed acts once", () =>
    Effect.gen(function* () {
      const { keys } = yield* Providers
      const { all, receive } = yield* polling()
      const killed: ReadonlyArray<FaultPoint | null> = [null, "signal.written", "signal.committed"]
      for (const at of killed) {
        const ann = yield* employed
        const claims = about(ann, caep("credential-change"))
        const token = yield* signed(keys.own, claims)
        if (at !== null) {
          const hit = (point: FaultPoint) => {
            if (point === at) throw new Error("killed")
          }
          const exit = yield* Effect.exit(Effect.provideService(receive(all[0]!, token), Failpoints, { hit }))
          assert.isTrue(Exit.isFailure(exit))
          assert.lengthOf(yield* told(ann), at === "signal.committed" ? 1 : 0)
        }
        const answers = yield* Effect.all(Array.from({ length: 5 }, () => post(token)), { concurrency: 5 })
        assert.deepStrictEqual(answers.map(({ status }) => status), Array(5).fill(202))
        // Signed anew by a transmitter that sends it again.
        const repeated = yield* counted("repeated")
        assert.strictEqual((yield* push(claims)).status, 202)
        assert.strictEqual(yield* counted("repeated"), repeated + 1)
        assert.lengthOf(yield* records(claims.jti), 1)
        assert.deepStrictEqual(yield* told(ann), ["session-revoked"])
      }
    }))

  it.effect("a forged, foreign or confused token is refused by its fault, and changes nothing", () =>
    Effect.gen(function* () {
      const { keys } = yield* Providers
      const ann = yield* employed
      assert.isTrue(yield* signsIn(ann))
      const seen = about(ann, caep("session-revoked"), { payload: { event_timestamp: 0 } })
      yield* push(seen)
      const good = (claims: object = {}): Claims => about(ann, risc("account-disabled"), { claims })
      const stranger = yield* pair("ES256", "own-1")
      const es384 = yield* pair("ES384", "own-1")
      const own = (claims: object, header?: object) => signed(keys.own, claims, header)
      const secret = new TextEncoder().encode(JSON.stringify(keys.own.jwk))
      const forged: Readonly<Record<string, readonly [err: string, token: Effect.Effect<string>, by?: Name]>> = {
        "alg none": ["invalid_key", Effect.sync(() => new UnsecuredJWT(good()).encode())],
        "HS256 by the public key": [
          "invalid_key",
          Effect.promise(async () => {
            const { SignJWT } = await import("jose")
            return await new SignJWT(good()).setProtectedHeader({ alg: "HS256", kid: "own-1", typ: "secevent+jwt" })
              .sign(secret)
          }),
        ],
        "an algorithm that is not configured": ["invalid_key", signed(es384, good())],
        "another key under its name": ["authentication_failed", signed(stranger, good())],
        "an unknown key": ["invalid_key", own(good(), { kid: "own-9" })],
        "another transmitter's key": ["invalid_key", signed(keys.stranger, good())],
        "another transmitter's token": ["invalid_key", signed(keys.second, good({ iss: issuerOf("second") }))],
        "another transmitter's name": ["invalid_issuer", own(good({ iss: issuerOf("second") }))],
        "an ID token's typ": ["invalid_request", own(good(), { typ: "JWT" })],
        "an access token's typ": ["invalid_request", own(good(), { typ: "at+jwt" })],
        "no typ": ["invalid_request", own(good(), { typ: undefined })],
        "a changed payload": [
          "authentication_failed",
          Effect.map(
            own(good()),
            (token) => token.split(".").with(1, Buffer.from(JSON.stringify(good())).toString("base64url")).join("."),
          ),
        ],
        "another audience": ["invalid_audience", own(good({ aud: "service-management" }))],
        "from tomorrow": ["invalid_request", own(good({ iat: nowSeconds() + 86_400 }))],
        "from last month": ["invalid_request", own(good({ iat: nowSeconds() - 30 * 86_400 }))],
        "a sub": ["invalid_request", own(good({ sub: ann }))],
        "an exp": ["invalid_request", own(good({ exp: nowSeconds() + 60 }))],
        "no jti": ["invalid_request", own(good({ jti: undefined }))],
        "a used jti": ["invalid_request", own(good({ jti: seen.jti }))],
        "no events": ["invalid_request", own(good({ events: {} }))],
        "a person of another issuer": [
          "access_denied",
          signed(keys.stranger, about(ann, risc("account-disabled"), {}, "stranger")),
          "stranger",
        ],
        "a person by an address": [
          "access_denied",
          own(good({ sub_id: { format: "email", email: `${ann}@example.com` } })),
        ],
        "no token": ["invalid_request", Effect.succeed("hello")],
        "nothing": ["invalid_request", Effect.succeed("")],
        "very much": ["invalid_request", Effect.succeed(`${"a".repeat(70_000)}.b.c`)],
      }
      const before = yield* everything(ann)
      const refused = yield* counted("refused")
      const codes = [...Object.values(forged).map(([err]) => err), ...Array<string>(4).fill("authentication_failed")]
      const reasons = yield* Effect.forEach(
        [...new Set(codes)],
        (err) => Effect.map(refusedAs(err), (n) => [err, n] as const),
      )
      for (const [name, [err, token, by = "own"]] of Object.entries(forged)) {
        const answer = yield* post(yield* token, { authorization: `Bearer ${secretOf(by)}` })
        assert.deepStrictEqual([answer.status, answer.err], [400, err], `${name}: ${answer.text}`)
        assert.sameMembers(Object.keys(JSON.parse(answer.text)), ["err", "description"], name)
      }
      for (const authorization of ["", "Bearer x", `Basic ${secretOf("own")}`, `Bearer ${secretOf("polled")}`]) {
        const answer = yield* post(yield* own(good()), { authorization })
        assert.deepStrictEqual([answer.status, answer.err], [400, "authentication_failed"], authorization)
      }
      assert.strictEqual((yield* post(yield* own(good()), { type: "application/json" })).status, 415)
      assert.deepStrictEqual(yield* everything(ann), before)
      assert.strictEqual(yield* counted("refused"), refused + Object.keys(forged).length)
      for (const [err, n] of reasons) {
        assert.strictEqual(yield* refusedAs(err), n + codes.filter((one) => one === err).length, err)
      }
      assert.isTrue(yield* signsIn(ann))
      assert.strictEqual((yield* push(good())).status, 202)
      assert.isFalse(yield* signsIn(ann))
    }))

  it.effect("the doctor says of whom tokens were refused within a day, and why", () =>
    Effect.gen(function* () {
      const { keys } = yield* Providers
      const { sql } = yield* Database
      yield* sql`delete from signal_refusal_counts`
      const ann = yield* employed
      const all = yield* Effect.scoped(Effect.gen(function* () {
        const { all, receive } = yield* polling()
        const second = all.find((one) => one.issuer === issuerOf("second"))!
        const token = (claims: object, by: Name = "second") =>
          signed(keys[by], about(ann, caep("session-revoked"), { claims }, "second"))
        for (const by of ["own", "stranger"] as const) yield* receive(second, yield* token({}, by))
        yield* receive(second, yield* token({ aud: "another" }))
        return all
      }))
      const told = yield* findings(all, true)
      assert.include(
        told,
        `warn tokens of ${issuerOf("second")} refused within a day: invalid_key 2, invalid_audience 1`,
      )
      yield* sql`update signal_refusal_counts set hour = hour - interval '25 hours'`
      assert.isEmpty((yield* findings(all, true)).filter((line) => line.includes(issuerOf("second"))))
      yield* sql`update signal_refusal_counts set hour = hour - interval '14 days' where transmitter = ${
        issuerOf("second")
      }`
      assert.strictEqual(yield* pruneRefusals, 2)
    }))

  it.effect("refused tokens count once where a write is repeated whose answer was lost, and over processes together", () =>
    Effect.gen(function* () {
      const database = yield* Database
      const { sql } = database
      const by = issuerOf("second")
      yield* sql`delete from signal_refusal_counts`
      const total = Effect.map(
        recentRefusals,
        (all) => all.filter(({ transmitter }) => transmitter === by).flatMap(({ reasons }) => reasons),
      )
      // Statements commit, and the next of their answers gets lost.
      let lost = 0
      const losing = new Proxy(sql, {
        apply: (target, self, args) => {
          const statement = Reflect.apply(target, self, args)
          return lost-- > 0 ? Effect.andThen(statement, Effect.fail("the answer was lost")) : statement
        },
      })
      yield* Effect.scoped(Effect.gen(function* () {
        const counting = Effect.provideService(signalRefusals, Database, { ...database, sql: losing })
        const [one, two] = [yield* counting, yield* counting]
        for (const { refuse } of [one, one, two]) yield* refuse(by, "invalid_key")
        lost = 1
        yield* one.flush
        yield* one.refuse(by, "invalid_key")
        yield* one.flush
        yield* two.flush
        assert.deepStrictEqual(yield* total, [{ err: "invalid_key", tokens: 4 }])
      }))
    }))

  it.effect("a clock that goes back over an hour loses no refusal", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const by = "https://back.example/tenant"
      const clock = yield* Clock.Clock
      const hour = 3_600_000
      const start = Date.now() - Date.now() % hour
      let now = start
      const moved: Clock.Clock = Object.create(clock, {
        currentTimeMillis: { get: () => Effect.succeed(now) },
      })
      yield* Effect.scoped(Effect.gen(function* () {
        const { flush, refuse } = yield* signalRefusals
        for (const at of [start - 1, start - 1, start, start - 1]) {
          now = at
          yield* Effect.provideService(refuse(by, "invalid_key"), Clock.Clock, moved)
          yield* flush
        }
      }))
      assert.deepStrictEqual(
        yield* sql`
          select hour, tokens::int as tokens from signal_refusal_counts where transmitter = ${by} order by hour`,
        [{ hour: new Date(start - hour), tokens: 3 }, { hour: new Date(start), tokens: 1 }],
      )
    }))

  it.effect("a token that would be refused for its age is forgotten, and no other", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const days = (count: number) => new Date(Date.now() - count * 86_400_000)
      yield* sql`
        insert into signal_events (transmitter, jti, digest, event, outcome, received_at) values
          (${issuerOf("own")}, 'old', '\\x00', 'x', 'unchanged', ${days(15)}),
          (${issuerOf("own")}, 'young', '\\x00', 'x', 'unchanged', ${days(13)})`
      assert.strictEqual(yield* pruneSignals, 1)
      const left = yield* sql<{ jti: string }>`select jti from signal_events where jti in ('old', 'young')`
      assert.deepStrictEqual(left, [{ jti: "young" }])
    }))

  it.effect("a person whom nobody knows is answered like any other, and changes nothing", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const counts = sql`select (select count(*) from person_holds) as holds, (select count(*) from people) as people,
        (select count(*) from session_floors) as floors, (select count(*) from lifecycle_events) as events`
      const before = yield* counts
      for (const type of [risc("account-disabled"), risc("account-enabled"), caep("session-revoked")]) {
        const claims = eventClaims(issuer, type, { issuer, subject: "nobody" })
        assert.deepStrictEqual(yield* push(claims), { status: 202, text: "", err: null })
        const [record] = yield* records(claims.jti)
        assert.deepInclude(record, { action: "signal.ignored", subject: null })
        assert.strictEqual(record!.details["result"], "unknown_person")
      }
      const unknown = about(yield* employed, caep("device-compliance-change"))
      assert.strictEqual((yield* push(unknown)).status, 202)
      assert.strictEqual((yield* records(unknown.jti))[0]!.details["result"], "unknown_type")
      assert.deepInclude((yield* counts)[0], { holds: before[0]!["holds"], floors: before[0]!["floors"] })
    }))

  it.effect("a disabled account holds the person, whatever the directory says, until all who hold it release it", () =>
    Effect.gen(function* () {
      const ann = yield* employed
      const events = (type: string, by: Name = "own", ago = 0) =>
        push(about(ann, risc(type), { payload: { event_timestamp: nowSeconds() - ago } }, by), by)
      assert.isTrue(yield* signsIn(ann))
      yield* events("account-disabled")
      assert.isFalse(yield* signsIn(ann))
      assert.strictEqual(yield* statusOf(ann), "suspended")
      assert.deepStrictEqual(yield* told(ann), ["account-disabled", "session-revoked"])
      yield* events("account-disabled")
      assert.lengthOf(yield* told(ann), 2)
      yield* line(ann, 2, "active")
      assert.strictEqual(yield* statusOf(ann), "suspended")
      yield* events("account-disabled", "second")
      yield* events("account-enabled")
      assert.strictEqual(yield* statusOf(ann), "suspended")
      yield* events("account-enabled")
      assert.strictEqual(yield* statusOf(ann), "suspended")
      yield* events("account-enabled", "second")
      assert.strictEqual(yield* statusOf(ann), "active")
      assert.strictEqual((yield* told(ann)).at(-1), "account-enabled")
      assert.isFalse(yield* signsIn(ann), "the sign-in of before")
      assert.isTrue(yield* signsIn(ann, { authTime: nowSeconds() + 5 }))
      yield* events("account-disabled", "own", 30)
      assert.strictEqual(yield* statusOf(ann), "active", "an older event that comes late")
    }))

  it.effect("a release gives back what the directory says, and no more", () =>
    Effect.gen(function* () {
      const ann = yield* employed
      const events = (type: string) => push(about(ann, risc(type)))
      yield* events("account-enabled")
      assert.isEmpty(yield* told(ann))
      yield* events("account-disabled")
      yield* line(ann, 2, "disabled")
      assert.strictEqual(yield* statusOf(ann), "disabled")
      yield* events("account-enabled")
      assert.strictEqual(yield* statusOf(ann), "disabled")
      yield* events("account-disabled")
      yield* line(ann, 3, "active")
      assert.strictEqual(yield* statusOf(ann), "suspended")
      yield* events("account-enabled")
      assert.strictEqual(yield* statusOf(ann), "active")
      yield* events("account-purged")
      yield* events("account-enabled")
      assert.strictEqual(yield* statusOf(ann), "suspended", "a purged account is not enabled")
    }))

  it.effect("one session ends alone, also one that was never seen here, and none of another person", () =>
    Effect.gen(function* () {
      const [ann, ben] = [yield* employed, yield* employed]
      const [s1, s2, s3] = [`${ann}-1`, `${ann}-2`, `${ben}-3`]
      assert.isTrue(yield* signsIn(ann, { sid: s1 }))
      assert.isTrue(yield* signsIn(ben, { sid: s3 }))
      const { sql } = yield* Database
      yield* sql`
        insert into sessions (id, issuer, sid, person_id, client_id, issued_at, last_seen_at, expires_at, aal, amr)
        values (gen_random_uuid(), ${issuer}, ${s3}, ${ben}, 'c', now(), now(), now(), 'aal1', '{}')
        on conflict do nothing`
      const end = (id: string) =>
        push(about(ann, caep("session-revoked"), {
          claims: {
            sub_id: {
              format: "complex",
              user: { format: "iss_sub", iss: issuer, sub: ann },
              session: { format: "opaque", id },
            },
          },
        }))
      for (const id of [s2, s3]) assert.strictEqual((yield* end(id)).status, 202)
      assert.isTrue(yield* signsIn(ann, { sid: s1 }))
      assert.isFalse(yield* signsIn(ann, { sid: s2 }))
      assert.isTrue(yield* signsIn(ben, { sid: s3 }))
      assert.deepStrictEqual(yield* told(ann), ["session-revoked"])
      yield* end(s1)
      assert.isFalse(yield* signsIn(ann, { sid: s1 }))
      assert.isTrue(yield* signsIn(ann))
    }))

  it.effect("an event about an old sign-in leaves the session that its person kept when ending all others", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const ann = yield* employed
      const sid = `${ann}-kept`
      const at = new Date(Date.now() - 60_000)
      yield* sql`
        insert into sessions (id, issuer, sid, person_id, client_id, issued_at, authenticated_at, last_seen_at, expires_at, aal, amr)
        values (gen_random_uuid(), ${issuer}, ${sid}, ${ann}, 'c', ${at}, ${at}, now(), now(), 'aal1', '{}')`
      yield* sql`
        insert into session_floors (person_id, before, except_issuer, except_sid)
        values (${ann}, now(), ${issuer}, ${sid})`
      assert.isTrue(yield* signsIn(ann, { sid }))
      const revoked = (secondsAgo: number) =>
        push(about(ann, caep("session-revoked"), { payload: { event_timestamp: nowSeconds() - secondsAgo } }))
      assert.strictEqual((yield* revoked(3_600)).status, 202)
      assert.isTrue(yield* signsIn(ann, { sid }))
      assert.isFalse(yield* signsIn(ann, { sid: `${ann}-other` }))
      assert.strictEqual((yield* revoked(0)).status, 202)
      assert.isFalse(yield* signsIn(ann, { sid }))
    }))

  it.effect("a poll acknowledges what was taken, names what was refused, and two processes act once", () =>
    Effect.gen(function* () {
      const { keys, paths } = yield* Providers
      const { sql } = yield* Database
      const [ann, ben] = [yield* employed, yield* employed]
      const by = issuerOf("polled")
      const wanted = [
        about(ann, risc("account-disabled"), {}, "polled"),
        about(ben, caep("session-revoked"), {
          claims: { sub_id: { format: "email", email: `${ben}@EXAMPLE.com` } },
        }, "polled"),
      ]
      const sets = new Map<string, string>()
      for (const claims of wanted) sets.set(claims.jti, yield* signed(keys.polled, claims))
      sets.set("forged", yield* signed(keys.own, about(ann, risc("account-enabled"), {}, "polled")))
      sets.set("renamed", yield* signed(keys.polled, about(ann, risc("account-enabled"), {}, "polled")))
      const asked: Array<Readonly<Record<string, unknown>>> = []
      let fails = true
      paths.set("/poll", ({ authorization, body }) => {
        if (authorization !== `Bearer ${secretOf("polled")}`) return [401, {}]
        asked.push(body)
        if (fails) return [503, {}]
        for (const jti of [...(body["ack"] ?? []) as Array<string>, ...Object.keys(body["setErrs"] ?? {})]) {
          sets.delete(jti)
        }
        return [200, { sets: Object.fromEntries([...sets].slice(0, 3)), moreAvailable: sets.size > 3 }]
      })
      const [one, two] = [yield* polling(), yield* polling()]
      assert.isTrue(yield* one.poll)
      assert.isFalse(yield* two.poll, "after a failure it waits")
      const [waits] = yield* sql<{ last_error: string }>`select last_error from signal_polls where transmitter = ${by}`
      assert.strictEqual(waits!.last_error, "answered 503")
      const faults = findings(one.all, false)
      assert.deepStrictEqual(yield* faults, [`warn ${by} answered 503`])
      // How far the poll is behind, from when it was listed until its first answer that leaves nothing.
      const sources = new Set<Effect.Effect<void>>()
      yield* Effect.provideService(gaugedPolls([by]), ScrapedGauges, sources)
      const [scrape] = sources
      const behind = Effect.gen(function* () {
        yield* scrape!
        const found = (yield* Metric.snapshot).find((metric) =>
          metric.type === "Gauge" && metric.id === "bailiwick_signal_poll_behind_seconds" &&
          metric.attributes?.["transmitter"] === by
        )
        return found?.type === "Gauge" ? Number(found.state.value) : null
      })
      yield* sql`update signal_polls set listed_at = now() - interval '10 minutes'`
      assert.closeTo((yield* behind)!, 600, 60)
      fails = false
      yield* sql`update signal_polls set not_before = 'epoch'`
      const turns = yield* Effect.all([one.poll, two.poll], { concurrency: 2 })
      assert.sameMembers(turns, [true, false])
      assert.strictEqual(sets.size, 0)
      assert.isBelow((yield* behind)!, 60)
      // Unless refusals of other tests were written just now.
      const fine = ["ok 4 transmitters, 1 of them polled"]
      assert.deepStrictEqual(yield* faults, (yield* findings(one.all, true)).length === 0 ? fine : [])
      const [finding] = yield* signalChecks({ signalTransmitters: [] })
      assert.strictEqual(finding!.what, "held people", "the console leads from this subject to their list")
      assert.match(finding!.notes[0]!.says, /^people held by a provider that .+: \d+$/)
      assert.strictEqual(yield* statusOf(ann), "suspended")
      assert.isFalse(yield* signsIn(ben))
      const errors = asked.flatMap(({ setErrs }) => Object.entries((setErrs ?? {}) as Record<string, { err: string }>))
      assert.deepStrictEqual(
        errors.map(([jti, { err }]) => [jti, err]).sort(),
        [["forged", "invalid_key"], ["renamed", "invalid_request"]],
      )
      assert.lengthOf(
        yield* sql`select from audit_records where action = 'signal.refused' and actor = ${`transmitter:${by}`}`,
        2,
      )
      // A turn that was killed before its acknowledgement: the same tokens once more.
      for (const claims of wanted) sets.set(claims.jti, yield* signed(keys.polled, claims))
      yield* sql`update signal_polls set not_before = 'epoch'`
      assert.isTrue(yield* two.poll)
      assert.strictEqual(sets.size, 0)
      for (const claims of wanted) assert.lengthOf(yield* records(claims.jti), 1)
      assert.deepStrictEqual(yield* told(ann), ["account-disabled", "session-revoked"])
      // The worker, which goes on polling.
      const enabled = about(ann, risc("account-enabled"), {}, "polled")
      sets.set(enabled.jti, yield* signed(keys.polled, enabled))
      yield* sql`update signal_polls set not_before = 'epoch'`
      yield* Layer.build(SignalPoller.layer.pipe(Layer.provide(Layer.succeed(SignalPolling, two.polling))))
      yield* until("the worker has polled", Effect.sync(() => sets.size), (size) => size === 0, 20)
      assert.strictEqual(yield* statusOf(ann), "active")
    }))

  it.effect("while the installation is held after a restore, people are held, and released later", () =>
    Effect.gen(function* () {
      const ann = yield* employed
      const { sql } = yield* Database
      const disabled = about(ann, risc("account-disabled"))
      const enabled = about(ann, risc("account-enabled"))
      const nobody = eventClaims(issuer, risc("account-enabled"), { issuer, subject: "nobody" })
      yield* sql`update installation set state = 'held', held_since = now(), held_reason = 'stream_gone'`
      const answers = yield* Effect.forEach([disabled, enabled, nobody], (claims) => push(claims)).pipe(
        Effect.ensuring(Effect.orDie(sql`
          update installation set state = 'open', held_since = null, held_reason = null`)),
      )
      assert.deepStrictEqual(answers.map(({ status }) => status), [202, 503, 503])
      assert.strictEqual(yield* statusOf(ann), "suspended")
      assert.strictEqual((yield* push(enabled)).status, 202)
      assert.strictEqual(yield* statusOf(ann), "active")
      assert.lengthOf(yield* records(enabled.jti), 1)
    }))

  it.effect("an identity that another person took in holds that name alone, and ends the person's sessions", () =>
    Effect.gen(function* () {
      const [ann, before] = [yield* employed, yield* employed]
      const { sql } = yield* Database
      yield* sql`update people set merged_into = ${ann} where id = ${before}`
      yield* sql`update identities set person_id = ${ann} where person_id = ${before}`
      yield* push(about(before, risc("account-disabled")))
      assert.deepStrictEqual([yield* statusOf(ann), yield* statusOf(before)], ["active", "suspended"])
      assert.isFalse(yield* signsIn(ann), "a sign-in of before")
      assert.isTrue(yield* signsIn(ann, { authTime: nowSeconds() + 5 }))
      assert.isFalse(yield* signsIn(ann, { authTime: nowSeconds() + 5, issuer, subject: before } as TokenOptions))
      yield* push(about(before, risc("account-enabled"), { payload: { event_timestamp: nowSeconds() } }))
      assert.strictEqual(yield* statusOf(before), "active")
      assert.isTrue(yield* signsIn(ann, { authTime: nowSeconds() + 5, issuer, subject: before } as TokenOptions))
    }))

  it.effect("a transmitter's metadata name its keys, unless they are another's", () =>
    Effect.gen(function* () {
      const { keys, paths, url } = yield* Providers
      const ann = yield* employed
      const { all } = yield* polling()
      const found = { ...all[0]!, issuer: `${url}/tenant`, jwksUri: null, subjectIssuers: [issuer] }
      const take = Effect.gen(function* () {
        const receiver = yield* Layer.build(Layer.fresh(SignalReceiver.layer([found])))
        const claims = { ...about(ann, caep("session-revoked")), iss: found.issuer }
        return yield* Effect.exit(Context.get(receiver, SignalReceiver).receive(found, yield* signed(keys.own, claims)))
      })
      const metadata = (of: string) =>
        paths.set("/.well-known/ssf-configuration/tenant", () => [200, { issuer: of, jwks_uri: `${url}/own/jwks` }])
      metadata(issuer)
      assert.isTrue(Exit.isFailure(yield* take))
      assert.isEmpty(yield* told(ann))
      metadata(found.issuer)
      assert.deepStrictEqual(yield* take, Exit.succeed({ kind: "taken" }))
      assert.deepStrictEqual(yield* told(ann), ["session-revoked"])
    }))
})
