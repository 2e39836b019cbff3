/** `/v1/assertions`: what people enrolled, checked for their issuer; each proof once, however many come at once. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { randomUUID } from "node:crypto"
import type { AssertionId } from "../../../../schemas/BrandedIds.ts"
import type { AssertionProof } from "../../../../schemas/identity/Assertion.ts"
import { checking } from "../../../../services/people/Assertions/CheckAssertion.ts"
import { loadNamed } from "../../../../services/people/Assertions/LoadAssertion.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { fenced } from "../../../../services/platform/database/FencedCommand.ts"
import { BeforeWrite } from "../../../../services/platform/database/FencedWrite.ts"
import { pruneAssertions } from "../../../../services/people/Assertions/PruneAssertions.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { get, type KeyPair, newKey } from "../../../support/SoftAuthenticator.ts"
import { issuer, person, tell } from "../../../support/TestIdentity.ts"
import { bearer, serviceTokenFor } from "../../../support/TestTokens.ts"
import { type Ask, code, complete, confirm, creation, passkey, start, strong, totp } from "./CredentialFixture.ts"
import { type Answer, asking, bodyOf, busy, call, fixture, other, portal, signIn } from "./MeFixture.ts"

const path = "/v1/assertions"

const asked = Effect.fnUntraced(function* (at: string, body: unknown, by = issuer) {
  const token = yield* serviceTokenFor(signIn, { issuer: by })
  return yield* call("POST", at, { authorization: `Bearer ${token}` }, body)
})

/** An assertion of a subject that was started. */
const started = Effect.fnUntraced(function* (subject: string, more: object = {}, by = issuer) {
  return bodyOf(yield* asked(path, { subject, ...more }, by), 201)
})

const checked = (assertion: string, proof: object, by?: string) => asked(`${path}/${assertion}/check`, { proof }, by)
const byCode = (code: string) => ({ type: "totp", code })

/** The answer to a new assertion's first check. */
const once = Effect.fnUntraced(function* (subject: string, proof: object) {
  const { assertion_id } = yield* started(subject)
  return bodyOf(yield* checked(assertion_id, proof))
})

/** A person with an app whose enrollment took no step. */
const withApp = Effect.gen(function* () {
  const me = yield* person()
  const ask = yield* asking(me, strong)
  const { challenge, intent_id } = yield* start(ask, { kind: "totp.enroll", label: "Phone" })
  const { secret } = challenge as { readonly secret: string }
  const { authenticator } = bodyOf(yield* complete(ask, intent_id, totp(secret)))
  const { sql } = yield* Database
  yield* sql`update authenticators set last_step = null, last_used_at = null where person_id = ${me}`
  return { me, ask, secret, id: authenticator.authenticator_id as string }
})

const withKey = Effect.fnUntraced(function* (counter = 5) {
  const me = yield* person()
  const ask = yield* asking(me, strong)
  const key = newKey()
  const { authenticator } = bodyOf(yield* passkey(ask, { key, counter }))
  const { sql } = yield* Database
  const [row] = yield* sql<{ id: string }>`select credential_id as id from authenticators where person_id = ${me}`
  return { me, ask, key, id: row!.id, authenticator: authenticator.authenticator_id as string }
})

type Signing = Partial<Parameters<typeof get>[0]> & { readonly counter: number }

const signed = ({ id, key }: { readonly id: string; readonly key: KeyPair }, challenge: string, how: Signing) => ({
  type: "webauthn.get",
  credential: get({ key, id, challenge, ...creation, ...how }),
})

const withCodes = Effect.gen(function* () {
  const me = yield* person()
  const ask = yield* asking(me, strong)
  const { intent_id } = yield* start(ask, { kind: "recovery_codes.generate" })
  const { authenticator, recovery_codes } = bodyOf(yield* complete(ask, intent_id, confirm))
  return { me, ask, id: authenticator.authenticator_id as string, codes: recovery_codes as ReadonlyArray<string> }
})
const byRecovery = (code: string) => ({ type: "recovery_code", code })

const listed = Effect.fnUntraced(function* (ask: Ask) {
  return bodyOf(yield* ask("GET", "/v1/me/authenticators")).items[0]
})

/** What the audit says of a person's assertions, oldest first. */
const audited = Effect.fnUntraced(function* (subject: string) {
  const { sql } = yield* Database
  return yield* sql<{ action: string; actor: string; reason: string | null; text: string }>`
    select action, actor, details->>'reason' as reason, details::text as text from audit_records
    where subject = ${`person:${subject}`} and action like 'assertion.%' order by id`
})

const refusal = (ended = false) => ({
  verified: false,
  ended,
  authenticator_id: null,
  kind: null,
  user_verified: null,
  codes_remaining: null,
})
const isRefused = (body: Record<string, unknown>, ended = false) => {
  const { assertion_id: _, ...rest } = body
  assert.deepStrictEqual(rest, refusal(ended))
}
const passes = (answers: ReadonlyArray<Answer>) => answers.filter(({ body }) => body.verified === true).length

layer(fixture(undefined, portal, 6_000), { excludeTestServices: true, timeout: "2 minutes" })("assertions", (it) => {
  it.effect("a one-time code passes once; its step and those before it never again", () =>
    Effect.gen(function* () {
      const { ask, id, me, secret } = yield* withApp
      const now = Date.now()
      const first = yield* once(me, byCode(code(secret, now)))
      assert.deepInclude(first, {
        verified: true,
        ended: true,
        kind: "totp",
        authenticator_id: id,
        user_verified: null,
      })
      assert.isNotNull((yield* listed(ask)).last_used_at)
      isRefused(yield* once(me, byCode(code(secret, now))))
      assert.isTrue((yield* once(me, byCode(code(secret, now + 30_000)))).verified)
      isRefused(yield* once(me, byCode(code(secret, now))))
      isRefused(yield* once(me, byCode(code(secret, now - 300_000))))
      const trail = yield* audited(me)
      const reasons = trail.filter(({ action }) => action !== "assertion.started").map(({ reason }) => reason)
      assert.deepStrictEqual(reasons, [null, "replayed", null, "replayed", "wrong"])
      assert.deepStrictEqual([...new Set(trail.map(({ actor }) => actor))], [`service:${issuer} ${signIn}`])
      assert.isFalse(trail.some(({ text }) => text.includes(code(secret, now))))
    }))

  it.effect("of checks at once of one code, under assertions of their own, exactly one passes", () =>
    Effect.gen(function* () {
      const { me, secret } = yield* withApp
      const all = yield* Effect.forEach([1, 2, 3, 4], () => started(me))
      const one = code(secret)
      const answers = yield* Effect.forEach(all, ({ assertion_id }) => checked(assertion_id, byCode(one)), {
        concurrency: "unbounded",
      })
      assert.strictEqual(passes(answers), 1, answers.map(({ text }) => text).join("\n"))
    }))

  it.effect("a signature passes with its user verified, and its challenge answers once", () =>
    Effect.gen(function* () {
      const mine = yield* withKey()
      const { assertion_id, expires_at, kinds, public_key } = yield* started(mine.me)
      assert.deepStrictEqual(kinds, ["passkey"])
      assert.isAtMost(Date.parse(expires_at) - Date.now(), 300_000)
      assert.deepInclude(public_key, { rpId: portal.hostname, userVerification: "required" })
      assert.deepStrictEqual(public_key.allowCredentials.map(({ id }: { id: string }) => id), [mine.id])
      const { sql } = yield* Database
      const [row] = yield* sql<{ text: string }>`
        select a::text as text from authenticator_assertions a where id = ${assertion_id}::uuid`
      assert.notInclude(row!.text, public_key.challenge)

      const proof = signed(mine, public_key.challenge, { counter: 6 })
      const answers = yield* Effect.all([1, 2, 3].map(() => checked(assertion_id, proof)), { concurrency: 3 })
      assert.strictEqual(passes(answers), 1)
      const passed = answers.find(({ body }) => body.verified === true)!.body
      assert.deepInclude(passed, { kind: "passkey", authenticator_id: mine.authenticator, user_verified: true })
      isRefused(bodyOf(yield* checked(assertion_id, proof)), true)
      assert.isNotNull((yield* listed(mine.ask)).last_used_at)
    }))

  it.effect("a counter that does not rise is refused and audited; of two at once with one counter one passes", () =>
    Effect.gen(function* () {
      const mine = yield* withKey(7)
      const answer = Effect.fnUntraced(function* (counter: number) {
        const { assertion_id, public_key } = yield* started(mine.me)
        return checked(assertion_id, signed(mine, public_key.challenge, { counter }))
      })
      isRefused(bodyOf(yield* yield* answer(7)))
      const both = yield* Effect.all([yield* answer(8), yield* answer(8)], { concurrency: 2 })
      assert.strictEqual(passes(both), 1)
      isRefused(bodyOf(yield* yield* answer(3)))
      assert.isTrue(bodyOf(yield* yield* answer(9)).verified)
      const reasons = (yield* audited(mine.me)).flatMap(({ reason }) => reason === null ? [] : [reason])
      assert.deepStrictEqual(reasons, ["counter_regressed", "counter_regressed", "counter_regressed"])
    }))

  it.effect("a signature for another challenge, page, domain, key or owner is refused; a challenge is spent by it", () =>
    Effect.gen(function* () {
      const mine = yield* withKey()
      const yours = yield* withKey()
      const elsewhere = (yield* started(mine.me)).public_key.challenge
      const tries: ReadonlyArray<(challenge: string) => object> = [
        () => signed(mine, elsewhere, { counter: 20 }),
        (challenge) => signed(mine, challenge, { counter: 20, origin: "https://portal.example.evil" }),
        (challenge) => signed(mine, challenge, { counter: 20, rpId: "evil.example" }),
        (challenge) => signed({ ...mine, key: yours.key }, challenge, { counter: 20 }),
        (challenge) => signed(yours, challenge, { counter: 20 }),
        (challenge) => signed(mine, challenge, { counter: 20, verified: false }),
        (challenge) => signed(mine, challenge, { counter: 20, framed: true }),
        (challenge) =>
          signed(mine, challenge, { counter: 20, userHandle: Buffer.from("another").toString("base64url") }),
      ]
      for (const make of tries) {
        // A minute has ten checks.
        const { sql } = yield* Database
        yield* sql`delete from rate_limits`
        const { assertion_id, public_key } = yield* started(mine.me)
        isRefused(bodyOf(yield* checked(assertion_id, make(public_key.challenge))))
        // Another's credential is none of this person, and leaves the challenge as little.
        const again = yield* checked(assertion_id, signed(mine, public_key.challenge, { counter: 20 }))
        isRefused(bodyOf(again))
      }
      assert.include((yield* audited(mine.me)).map(({ reason }) => reason), "challenge_spent")
    }))

  it.effect("the issuer says whether a touch is enough, and which page of the domain asks", () =>
    Effect.gen(function* () {
      const mine = yield* withKey()
      const origin = "https://id.portal.example"
      const { assertion_id, public_key } = yield* started(mine.me, { user_verification: "preferred", origin })
      assert.strictEqual(public_key.userVerification, "preferred")
      const proof = signed(mine, public_key.challenge, { counter: 6, verified: false, origin })
      assert.deepInclude(bodyOf(yield* checked(assertion_id, proof)), { verified: true, user_verified: false })
      const no = yield* asked(path, { subject: mine.me, origin: "https://elsewhere.example" })
      assert.strictEqual(no.status, 422)
      assert.deepStrictEqual(no.body.detail[0].loc, ["body", "origin"])
    }))

  it.effect("a recovery code passes once, also at once; the person is told when few are left, and when none", () =>
    Effect.gen(function* () {
      const { ask, codes, id, me } = yield* withCodes
      const { sql } = yield* Database
      const notices = sql<{ kind: string }>`
        select kind from person_notices where person_id = ${me} and subject_id = ${id}::uuid order by created_at, kind`
      const all = yield* Effect.forEach([1, 2, 3], () => started(me))
      const both = yield* Effect.forEach(all, ({ assertion_id }) => checked(assertion_id, byRecovery(codes[0]!)), {
        concurrency: 3,
      })
      assert.strictEqual(passes(both), 1)
      assert.strictEqual((yield* listed(ask)).codes_remaining, 9)
      assert.deepStrictEqual(yield* notices, [])
      for (const [i, one] of codes.slice(1).entries()) {
        yield* sql`delete from rate_limits`
        const typed = i === 0 ? one.toUpperCase().replaceAll("-", " ") : one
        const passed = yield* once(me, byRecovery(typed))
        assert.deepInclude(passed, { verified: true, kind: "recovery_codes", codes_remaining: 8 - i })
        const kinds = (yield* notices).map(({ kind }) => kind)
        assert.deepStrictEqual(kinds, i < 5 ? [] : i < 8 ? ["codes.few"] : ["codes.few", "codes.none"])
      }
      assert.deepStrictEqual((yield* started(me)).kinds, [])
    }))

  it.effect("two different recovery codes at once both pass, and both are counted", () =>
    Effect.gen(function* () {
      const { ask, codes, me } = yield* withCodes
      const all = yield* Effect.forEach([0, 1], () => started(me))
      const both = yield* Effect.forEach(
        all,
        ({ assertion_id }, i) => checked(assertion_id, byRecovery(codes[i]!)),
        { concurrency: 2 },
      )
      assert.deepStrictEqual(both.map(({ body }) => body.codes_remaining).sort(), [8, 9])
      assert.strictEqual((yield* listed(ask)).codes_remaining, 8)
    }))

  it.effect("of an unknown subject nothing is told: it starts, is refused and locked like a person without any", () =>
    Effect.gen(function* () {
      const known = yield* person()
      const trails: Array<unknown> = []
      for (const subject of [known, `nobody-${randomUUID()}`, " "]) {
        const { sql } = yield* Database
        const first = yield* started(subject)
        const { assertion_id, expires_at: _, ...told } = first
        assert.deepStrictEqual(told, { kinds: [], public_key: null })
        const answers: Array<unknown> = []
        for (let i = 0; i < 7; i++) {
          const { body, status } = yield* checked(
            i < 5 ? assertion_id : (yield* started(subject)).assertion_id,
            byCode("000000"),
          )
          answers.push([status, body.verified ?? null, body.ended ?? null, body.code ?? null])
        }
        const foreign = yield* checked((yield* started(subject)).assertion_id, {
          type: "webauthn.get",
          credential: get({ key: newKey(), id: "AAAA", challenge: "AAAA", ...creation, counter: 1 }),
        })
        isRefused(bodyOf(foreign))
        isRefused(yield* once(subject, byRecovery("abcde-fghij")))
        trails.push(answers)
        yield* sql`delete from rate_limits`
      }
      assert.deepStrictEqual(trails[1], trails[0])
      assert.deepStrictEqual(trails[2], trails[0])
      assert.deepStrictEqual((trails[0] as ReadonlyArray<unknown>).slice(3), [
        [200, false, false, null],
        [200, false, true, null],
        [429, null, null, "rate_limited"],
        [429, null, null, "rate_limited"],
      ])
    }))

  it.effect("guessing locks the app alone, for a minute and longer; the passkey and the codes go on", () =>
    Effect.gen(function* () {
      const { ask, me, secret } = yield* withApp
      const key = newKey()
      bodyOf(yield* passkey(ask, { key, counter: 1 }))
      const { sql } = yield* Database
      const [row] = yield* sql<{ id: string }>`
        select credential_id as id from authenticators where person_id = ${me} and credential_id is not null`
      const wrong = ["000000", "111111", "222222"].find((guess) =>
        ![-60_000, -30_000, 0, 30_000, 60_000].some((off) => code(secret, Date.now() + off) === guess)
      )!
      const guesses = yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8], () => started(me))
      const answers = yield* Effect.forEach(guesses, ({ assertion_id }) => checked(assertion_id, byCode(wrong)), {
        concurrency: 2,
      })
      // However many come at once, none is judged once five have failed.
      assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 429, 429, 429])
      const locked = yield* checked((yield* started(me)).assertion_id, byCode(code(secret)))
      assert.deepStrictEqual(codeOf(locked), [429, "rate_limited"])
      assert.isAtLeast(Number(locked.headers.get("retry-after")), 1)
      assert.match(locked.headers.get("ratelimit") ?? "", /t=\d+/)
      const { assertion_id, public_key } = yield* started(me)
      const proof = signed({ key, id: row!.id }, public_key.challenge, { counter: 2 })
      assert.isTrue(bodyOf(yield* checked(assertion_id, proof)).verified)
      yield* sql`update authenticator_lockouts set locked_until = '2001-01-01Z'`
      yield* sql`delete from rate_limits`
      assert.isTrue((yield* once(me, byCode(code(secret)))).verified)
      const [after] = yield* sql<{ failed: number }>`select max(failed)::int as failed from authenticator_lockouts l
        join authenticator_assertions a using (subject_key) where a.person_id = ${me}`
      assert.strictEqual(after!.failed, 0)
    }))

  it.effect("an assertion is its issuer's own; a person, another client and nobody may not", () =>
    Effect.gen(function* () {
      const { me, secret } = yield* withApp
      const { assertion_id } = yield* started(me)
      assert.deepStrictEqual(codeOf(yield* checked(assertion_id, byCode(code(secret)), other)), [404, "not_found"])
      assert.deepStrictEqual(codeOf(yield* checked(randomUUID(), byCode("000000"))), [404, "not_found"])
      assert.deepStrictEqual(codeOf(yield* checked("x", byCode("000000"))), [404, "not_found"])
      // The same subject at another issuer is nobody.
      assert.deepStrictEqual((yield* started(me, {}, other)).kinds, [])
      const stranger = yield* serviceTokenFor("portal", { issuer })
      const refused = [
        [{}, 401],
        [{ authorization: `Bearer ${stranger}` }, 403],
        [yield* bearer(me), 403],
      ] as const
      for (const [headers, status] of refused) {
        assert.strictEqual((yield* call("POST", path, headers, { subject: me })).status, status)
      }
      assert.isTrue(bodyOf(yield* checked(assertion_id, byCode(code(secret)))).verified)
    }))

  it.effect("of two processes that have read the same code, signature or recovery code, one passes", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const check = yield* checking
      const by = { principal: `service:${issuer} ${signIn}`, issuer }
      /** Checks both as processes of their own, which both have read before either writes. */
      const both = Effect.fnUntraced(
        function* (subject: string, proofs: ReadonlyArray<AssertionProof>, ids: ReadonlyArray<AssertionId>) {
          let arrived = 0
          const together = yield* Deferred.make<void>()
          const barrier = Effect.suspend(() =>
            ++arrived === proofs.length ? Deferred.succeed(together, undefined) : Deferred.await(together)
          )
          const answers = yield* Effect.forEach(
            proofs,
            Effect.fnUntraced(function* (proof, i) {
              const [named] = yield* loadNamed(sql, ids[i]!, issuer)
              return yield* fenced(sql, { turn: randomUUID(), admissions: [] }, check(by, ids[i]!, named!, proof))
            }),
            { concurrency: proofs.length },
          ).pipe(Effect.provideService(BeforeWrite, barrier))
          assert.isAtLeast(arrived, proofs.length)
          assert.strictEqual(answers.filter(({ verified }) => verified).length, 1, subject)
        },
      )
      const idsOf = (subject: string, n = 2) =>
        Effect.map(
          Effect.forEach(Array.from({ length: n }), () => started(subject)),
          (all) => all.map(({ assertion_id }) => assertion_id as AssertionId),
        )

      const app = yield* withApp
      const proof = { type: "totp" as const, code: code(app.secret) }
      yield* both(app.me, [proof, proof], yield* idsOf(app.me))
      const set = yield* withCodes
      const one = { type: "recovery_code" as const, code: set.codes[0]! }
      yield* both(set.me, [one, one], yield* idsOf(set.me))
      assert.strictEqual((yield* listed(set.ask)).codes_remaining, 9)
      const mine = yield* withKey()
      const [first, second] = [yield* started(mine.me), yield* started(mine.me)]
      const shown = [first, second].map(({ public_key }) =>
        signed(mine, public_key.challenge, { counter: 9 }) as AssertionProof
      )
      yield* both(mine.me, shown, [first.assertion_id, second.assertion_id])
      const again = yield* started(mine.me)
      const same = signed(mine, again.public_key.challenge, { counter: 10 }) as AssertionProof
      yield* both(mine.me, [same, same], [again.assertion_id, again.assertion_id])
      // Without a counter, the challenge alone keeps a second use out.
      yield* sql`update authenticators set sign_count = 0 where person_id = ${mine.me}`
      const uncounted = yield* started(mine.me)
      const zero = signed(mine, uncounted.public_key.challenge, { counter: 0 }) as AssertionProof
      yield* both(mine.me, [zero, zero], [uncounted.assertion_id, uncounted.assertion_id])
    }))

  it.effect("guesses of two processes that have read the same lock-out are both counted", () =>
    Effect.gen(function* () {
      const { me } = yield* withApp
      const { sql } = yield* Database
      const check = yield* checking
      const by = { principal: `service:${issuer} ${signIn}`, issuer }
      let arrived = 0
      const together = yield* Deferred.make<void>()
      const barrier = Effect.suspend(() =>
        ++arrived === 2 ? Deferred.succeed(together, undefined) : Deferred.await(together)
      )
      yield* Effect.forEach([1, 2], () =>
        Effect.gen(function* () {
          const { assertion_id } = yield* started(me)
          const [named] = yield* loadNamed(sql, assertion_id, issuer)
          const proof = { type: "totp" as const, code: "12345 " }
          const command = check(by, assertion_id, named!, proof)
          return yield* fenced(sql, { turn: randomUUID(), admissions: [] }, command).pipe(
            Effect.provideService(BeforeWrite, barrier),
          )
        }), { concurrency: 2 })
      const [row] = yield* sql<{ failed: number }>`
        select failed from authenticator_lockouts l join authenticator_assertions a using (subject_key)
        where a.person_id = ${me} limit 1`
      assert.strictEqual(row!.failed, 2)
    }))

  it.effect("a challenge that was answered wrongly meanwhile is not answered again, whoever read it before", () =>
    Effect.gen(function* () {
      const mine = yield* withKey()
      const { sql } = yield* Database
      const check = yield* checking
      const { assertion_id, public_key } = yield* started(mine.me)
      const [named] = yield* loadNamed(sql, assertion_id, issuer)
      const by = { principal: `service:${issuer} ${signIn}`, issuer }
      const [read, spent] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const right = signed(mine, public_key.challenge, { counter: 6 }) as AssertionProof
      const late = yield* fenced(
        sql,
        { turn: randomUUID(), admissions: [] },
        check(by, assertion_id, named!, right),
      ).pipe(
        Effect.provideService(
          BeforeWrite,
          Effect.andThen(Deferred.succeed(read, undefined), Deferred.await(spent)),
        ),
        Effect.forkChild,
      )
      yield* Deferred.await(read)
      const wrong = signed(mine, public_key.challenge, { counter: 6, rpId: "evil.example" })
      isRefused(bodyOf(yield* checked(assertion_id, wrong)))
      yield* Deferred.succeed(spent, undefined)
      isRefused(yield* Fiber.join(late))
      const [row] = yield* sql<{ refused: number }>`
        select refused from authenticator_assertions where id = ${assertion_id}::uuid`
      assert.strictEqual(row!.refused, 2)
    }))

  it.effect("a person who was suspended since the start passes no more, and starts as nobody", () =>
    Effect.gen(function* () {
      const { me, secret } = yield* withApp
      const { assertion_id, kinds } = yield* started(me)
      assert.deepStrictEqual(kinds, ["totp"])
      const line = { id: me, version: 2, issuer, subject: me, status: "suspended", email: null, display_name: null }
      yield* tell("person", { ...line, email_verified: false })
      isRefused(bodyOf(yield* checked(assertion_id, byCode(code(secret)))))
      assert.deepStrictEqual((yield* started(me)).kinds, [])
    }))

  it.effect("a check is limited by the minute, person and kind; a refusal repeats no secret", () =>
    Effect.gen(function* () {
      const { codes, me } = yield* withCodes
      const statuses: Array<number> = []
      for (let i = 0; i < 11; i++) {
        const { assertion_id } = yield* started(me)
        statuses.push((yield* checked(assertion_id, byRecovery(`wrong-${i}`))).status)
      }
      assert.deepStrictEqual(statuses, [...Array(10).fill(200), 429])
      const { assertion_id } = yield* started(me)
      assert.deepStrictEqual(codeOf(yield* checked(assertion_id, byRecovery(codes[0]!))), [429, "rate_limited"])
      const malformed = yield* checked(assertion_id, { type: "totp", code: "12345678" })
      assert.strictEqual(malformed.status, 422)
      assert.notInclude(malformed.text, "12345678")
    }))

  it.effect("an issuer is limited over all its clients, and another one goes on", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const later = new Date(Date.now() + 3_600_000)
      yield* sql`insert into rate_buckets (key, level, drawn, at, full_at)
        values (${`management.writes:issuer:${busy}`}, 0, 0, ${later}, ${later})`
      const refused = yield* asked(path, { subject: "anybody" }, busy)
      assert.deepStrictEqual(codeOf(refused), [429, "rate_limited"])
      assert.strictEqual(refused.headers.get("ratelimit-policy"), '"default";q=6000;w=60')
      yield* started("anybody", {}, other)
    }))

  it.effect("an identity that became another person's since the start answers for neither", () =>
    Effect.gen(function* () {
      const [mine, yours] = [yield* withApp, yield* withApp]
      const { sql } = yield* Database
      const { assertion_id } = yield* started(mine.me)
      yield* sql`update identities set person_id = ${yours.me} where subject = ${mine.me}`
      isRefused(bodyOf(yield* checked(assertion_id, byCode(code(yours.secret)))))
      isRefused(bodyOf(yield* checked(assertion_id, byCode(code(mine.secret)))))
      assert.isTrue((yield* once(mine.me, byCode(code(yours.secret)))).verified)
    }))

  it.effect("what is over is pruned", () =>
    Effect.gen(function* () {
      const { assertion_id } = yield* started(yield* person())
      const { sql } = yield* Database
      const there = sql`select from authenticator_assertions where id = ${assertion_id}::uuid`
      yield* pruneAssertions
      assert.strictEqual((yield* there).length, 1)
      yield* sql`update authenticator_assertions set expires_at = '2001-01-01Z' where id = ${assertion_id}::uuid`
      isRefused(bodyOf(yield* checked(assertion_id, byCode("000000"))), true)
      assert.isAtLeast(yield* pruneAssertions, 1)
      assert.strictEqual((yield* there).length, 0)
    }))
})
