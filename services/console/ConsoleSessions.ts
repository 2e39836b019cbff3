/**
 * The web console's sessions. A browser holds a cookie of 256 random bits, and the row its SHA-256; the tokens of the
 * sign-in never leave this program, and are sealed by the Vault.
 *
 * A session speaks for the person whom its access token names, for the mail account that its ID token names (where the
 * issuer is one of mail accounts), or for both. It ends 8 hours after the sign-in, after 30 minutes without a request,
 * by a sign-out, when the issuer refuses to refresh its tokens, and when an epoch begins after a restore. What ends a
 * person's other sessions (a revoked `sid`, a cut-off, a disabled person) refuses its access token as well: each request
 * presents that token to the statement that recognises callers. Every process reads the row at each request, so an end
 * holds everywhere from its commit on.
 *
 * A sign-in again by the same person or account in the same browser (a step-up) keeps the session's id and gives it new
 * tokens and a new cookie; the old cookie is dead. A step-up from which another person or account comes back is refused, and
 * the browser's session stays as it was: what was typed and is about to be sent is the first one's. A person who is linked
 * by several issuers may step up at any of them: by another one than before, the session gets a new id, and speaks for a
 * mail account only where that sign-in names one.
 *
 * Tokens are refreshed a minute before they expire, by one request at a time over all processes (`refreshed_by`): an
 * issuer may take a refresh token that comes twice for a stolen one. A process that is killed between the issuer's
 * answer and the write loses the tokens, and the person signs in again.
 */
import { Clock, Context, Effect, Layer, Redacted, Schema } from "effect"
import { createHash, randomBytes } from "node:crypto"
import { AccountId } from "../../schemas/BrandedIds.ts"
import { DependencyUnavailable } from "../../schemas/problems/HttpProblems.ts"
import { InvalidToken } from "../../schemas/problems/IdentityProblems.ts"
import { isUuid } from "../../schemas/Wire.ts"
import { Principals } from "../authentication/Principals.ts"
import { CallerAuthentication } from "../people/CallerAuthentication.ts"
import type { Origin } from "../people/SessionActivity.ts"
import { Database } from "../platform/database/Database.ts"
import { run } from "../platform/database/UnitOfWork.ts"
import { Ids } from "../platform/Ids.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { type Sealed, Vault } from "../platform/security/Vault.ts"
import { OpenIdClient, type SignedIn, SignInFailed, type Tokens } from "./OpenIdClient.ts"

/** Milliseconds. */
export interface SessionLengths {
  /** How long a session lasts without a request; exact to a minute. */
  readonly idle: number
  /** How long it lasts at most. */
  readonly longest: number
}

export const sessionLengths: SessionLengths = { idle: 30 * 60_000, longest: 8 * 3_600_000 }

/** A session whose cookie was presented. Times in milliseconds since the epoch. */
export interface ConsoleSession {
  readonly id: string
  readonly issuer: string
  /** The person who signed in; null where the sign-in names none. */
  readonly personId: string | null
  /** The mail account that signed in; null where the sign-in names none. */
  readonly accountId: AccountId | null
  /** In seconds since the epoch; null where the issuer does not tell. */
  readonly authTime: number | null
  readonly idleEndsAt: number
  readonly endsAt: number
  /** The hash of its cookie, by which its row is found again. */
  readonly hash: Uint8Array
}

interface Row {
  readonly id: string
  readonly issuer: string
  readonly person_id: string | null
  readonly account_id: AccountId | null
  readonly authenticated_at: Date | null
  readonly kid: string
  readonly tokens: Uint8Array
  readonly tokens_until: Date | null
  readonly seen_at: Date
  readonly ends_at: Date
}

const SealedTokens = Schema.fromJsonString(Schema.Struct({
  access: Schema.String,
  refresh: Schema.NullOr(Schema.String),
  id: Schema.String,
}))
const encodeTokens = Schema.encodeSync(SealedTokens)
const decodeTokens = Schema.decodeUnknownSync(SealedTokens)

const cookieFormat = /^[A-Za-z0-9_-]{43}$/

/** How much later than its last written use a session may have been used. */
const coarseMillis = 60_000
/** Tokens are refreshed so long before they expire. */
const aheadMillis = 60_000
/** How long one process has for a refresh before another may try. */
const refreshMillis = 15_000
/** How often, and for how long, a request looks whether another one has refreshed the tokens. */
const look = { millis: 100, times: 100 }

const hashOf = (cookie: string): Uint8Array => new Uint8Array(createHash("sha256").update(cookie).digest())

export class ConsoleSessions extends Context.Service<ConsoleSessions, {
  /**
   * Opens the session of a completed sign-in; `before` is the cookie that the browser had. SignInFailed where neither a
   * person nor an account of the directory is active under the sign-in's names, and `another_holder` where a step-up is
   * answered by another one than the browser's session is of.
   */
  readonly open: (
    signedIn: SignedIn,
    origin: Origin,
    before: string | undefined,
  ) => Effect.Effect<
    { readonly cookie: Redacted.Redacted; readonly idle: number },
    SignInFailed | DependencyUnavailable
  >
  /** The live session of a cookie, noted as used now; null for any other text. */
  readonly find: (cookie: string) => Effect.Effect<ConsoleSession | null>
  /** The same without noting a use, for an answer that lasts for hours: an open page does not keep its session alive. */
  readonly watch: (cookie: string) => Effect.Effect<ConsoleSession | null>
  /** Whether the live session of a cookie is one of an auditor; notes no use. */
  readonly audits: (cookie: string) => Effect.Effect<boolean>
  /** The address by which an issuer may know the holder of a session (`login_hint`); null where none is known. */
  readonly hint: (session: ConsoleSession, issuer: string) => Effect.Effect<string | null>
  /** The access token of a session, refreshed where it is about to expire. */
  readonly accessToken: (session: ConsoleSession) => Effect.Effect<string, InvalidToken | DependencyUnavailable>
  /**
   * Ends the session, or all sessions of its person and account; returns the address at which the issuer ends its own
   * session, where it has one.
   */
  readonly close: (
    session: ConsoleSession,
    everywhere: boolean,
  ) => Effect.Effect<URL | null, DependencyUnavailable>
}>()("bailiwick/services/console/ConsoleSessions") {
  /**
   * `mailIssuers` are the issuers whose subjects are mail accounts; `directoryNames` the names of issuers in the directory,
   * of those that have another one there.
   */
  static readonly layer = (
    mailIssuers: ReadonlySet<string>,
    directoryNames: ReadonlyMap<string, string> = new Map(),
    lengths: SessionLengths = sessionLengths,
  ) => Layer.effect(ConsoleSessions, make(mailIssuers, directoryNames, lengths))
}

/** Deletes sessions that have ended by themselves; any number of processes may call it. Returns how many went. */
export const pruneConsoleSessions = Effect.gen(function* () {
  const { sql } = yield* Database
  const now = yield* Clock.currentTimeMillis
  const idle = new Date(now - sessionLengths.idle - coarseMillis)
  const gone = yield* sql`
    delete from console_sessions where ends_at <= ${new Date(now)} or seen_at <= ${idle} returning 1`
  return gone.length
}).pipe(Effect.withSpan("ConsoleSessions.prune"))

/** The person and the account that a sign-in names, as far as each of them is active. */
const holdersOf = (mailIssuers: ReadonlySet<string>) =>
  Effect.gen(function* () {
    const callers = yield* CallerAuthentication
    const principals = yield* Principals
    return Effect.fnUntraced(function* ({ authTime, issuer, subject, tokens }: SignedIn, origin: Origin) {
      const person = yield* callers.recognise(`Bearer ${tokens.access}`, origin).pipe(
        Effect.map(({ personId }) => personId),
        Effect.catchTag("InvalidToken", () => Effect.succeed(null)),
      )
      if (!mailIssuers.has(issuer) || !isUuid(subject)) return { personId: person, accountId: null }
      const account = yield* principals.authenticate({
        via: "cookie",
        accountId: AccountId.make(subject.toLowerCase()),
        authTime,
      })
        .pipe(
          Effect.map(({ accountId }) => accountId),
          Effect.catchTag("InvalidCredentials", () => Effect.succeed(null)),
        )
      return { personId: person, accountId: account }
    })
  })

type Holder = Pick<ConsoleSession, "accountId" | "personId">

/**
 * Whether a completed sign-in is one of the session's holder. Persons are compared as merged: one whom two issuers name is
 * one, whether or not both issuers also name a mail account. Two mail accounts are never the same holder.
 */
const sameHolder = Effect.fnUntraced(function* (before: Holder, after: Holder) {
  const bothAccounts = before.accountId !== null && after.accountId !== null
  if (bothAccounts && before.accountId !== after.accountId) return false
  if (before.personId === after.personId) return before.personId !== null || bothAccounts
  if (before.personId === null || after.personId === null) return false
  const { sql } = yield* Database
  const rows = yield* sql`
    select from people one join people other on coalesce(other.merged_into, other.id) = coalesce(one.merged_into, one.id)
    where one.id = ${before.personId} and other.id = ${after.personId}`.pipe(Effect.orDie)
  return rows.length > 0
})

/** The address that the directory has of a holder under an issuer. */
const hintOf = (mailIssuers: ReadonlySet<string>, directoryNames: ReadonlyMap<string, string>) =>
  Effect.fnUntraced(function* ({ accountId, personId }: Holder, issuer: string) {
    const { reads } = yield* Database
    const account = mailIssuers.has(issuer) ? accountId : null
    const [row] = yield* reads<{ email: string | null }>`
      select coalesce(
        (select email from people
         where issuer = ${
      directoryNames.get(issuer) ?? issuer
    } and not removed and email is not null and ${personId}::text in (id, merged_into)
         order by merged_into is null desc, id limit 1),
        (select email from accounts where id = ${account}::uuid)) as email`.pipe(Effect.orDie)
    return row?.email ?? null
  })

const actorOf = ({ accountId, personId }: Holder) => personId === null ? `account:${accountId}` : `person:${personId}`

const make = Effect.fnUntraced(function* (
  mailIssuers: ReadonlySet<string>,
  directoryNames: ReadonlyMap<string, string>,
  lengths: SessionLengths,
) {
  const database = yield* Database
  const { reads, sql } = database
  const audit = yield* Audit
  const client = yield* OpenIdClient
  const vault = yield* Vault
  const holders = yield* holdersOf(mailIssuers)

  const sealedAt = (id: string, { access, id: idToken, refresh }: Tokens): Sealed =>
    vault.seal(Redacted.make(encodeTokens({ access, refresh, id: idToken })), cellOf(id))
  const tokensOf = ({ id, kid, tokens, tokens_until }: Row): Tokens => ({
    ...decodeTokens(Redacted.value(vault.open({ kid, bytes: tokens }, cellOf(id)))),
    until: tokens_until === null ? null : tokens_until.getTime(),
  })

  /** The row of a live session. */
  const live = Effect.fnUntraced(function* (hash: Uint8Array) {
    const now = yield* Clock.currentTimeMillis
    const [row] = yield* reads<Row>`
      select s.id::text, s.issuer, s.person_id, s.account_id::text, s.authenticated_at, s.kid, s.tokens, s.tokens_until,
        s.seen_at, s.ends_at
      from console_sessions s
      where s.hash = ${hash} and s.ends_at > ${new Date(now)}
        and s.seen_at > ${new Date(now - lengths.idle - coarseMillis)}
        and not coalesce((select sessions_before from installation) >= s.created_at, false)`.pipe(Effect.orDie)
    return row
  })

  const open = Effect.fn("ConsoleSessions.open")(
    function* (signedIn: SignedIn, origin: Origin, before: string | undefined) {
      const holder = yield* holders(signedIn, origin)
      if (holder.personId === null && holder.accountId === null) return yield* new SignInFailed({ code: "unknown" })
      const now = yield* Clock.currentTimeMillis
      const cookie = randomBytes(32).toString("base64url")
      const old = before === undefined ? undefined : yield* live(hashOf(before))
      const held = old !== undefined &&
        (yield* sameHolder({ personId: old.person_id, accountId: old.account_id }, holder))
      if (signedIn.stepsUp !== null && old !== undefined && !held) {
        return yield* new SignInFailed({ code: "another_holder" })
      }
      const same = held && old.issuer === signedIn.issuer && old.account_id === holder.accountId
      const id = same ? old.id : yield* (yield* Ids).next
      const { bytes, kid } = sealedAt(id, signedIn.tokens)
      const row = {
        hash: hashOf(cookie),
        issuer: signedIn.issuer,
        person_id: holder.personId,
        account_id: holder.accountId,
        authenticated_at: signedIn.authTime === null ? null : new Date(signedIn.authTime * 1_000),
        kid,
        tokens: bytes,
        tokens_until: signedIn.tokens.until === null ? null : new Date(signedIn.tokens.until),
        refreshed_by: null,
        created_at: new Date(now),
        seen_at: new Date(now),
        ends_at: new Date(now + lengths.longest),
      }
      yield* run(Effect.gen(function* () {
        if (old !== undefined) yield* sql`delete from console_sessions where id = ${old.id}::uuid`
        yield* sql`insert into console_sessions ${sql.insert({ id, ...row })}`
        yield* audit.append({
          action: "console-session.opened",
          actor: actorOf(holder),
          subject: `console-session:${id}`,
          outcome: "done",
          details: { issuer: signedIn.issuer, again: same },
        })
      }))
      return { cookie: Redacted.make(cookie, { label: "console session" }), idle: lengths.idle }
    },
    Effect.provideService(Database, database),
  )

  /** The live session of a cookie as it was last used at `seen`. */
  const sessionOf = ({ account_id: accountId, person_id: personId, ...row }: Row, hash: Uint8Array, seen: number) => ({
    id: row.id,
    issuer: row.issuer,
    personId,
    accountId,
    authTime: row.authenticated_at === null ? null : row.authenticated_at.getTime() / 1_000,
    idleEndsAt: Math.min(seen + lengths.idle, row.ends_at.getTime()),
    endsAt: row.ends_at.getTime(),
    hash,
  })

  const watch = Effect.fn("ConsoleSessions.watch")(function* (cookie: string) {
    if (!cookieFormat.test(cookie)) return null
    const hash = hashOf(cookie)
    const row = yield* live(hash)
    return row === undefined ? null : sessionOf(row, hash, row.seen_at.getTime())
  })

  const audits = Effect.fn("ConsoleSessions.audits")(function* (cookie: string) {
    const session = yield* watch(cookie)
    if (session === null || session.personId === null) return false
    const rows = yield* sql`
      select from people named join people p on p.id = coalesce(named.merged_into, named.id)
      where named.id = ${session.personId} and p.auditor`.pipe(Effect.orDie)
    return rows.length > 0
  })

  const find = Effect.fn("ConsoleSessions.find")(function* (cookie: string) {
    if (!cookieFormat.test(cookie)) return null
    const hash = hashOf(cookie)
    const row = yield* live(hash)
    if (row === undefined) return null
    const now = yield* Clock.currentTimeMillis
    if (row.seen_at.getTime() <= now - coarseMillis) {
      yield* sql`update console_sessions set seen_at = greatest(seen_at, ${new Date(now)}) where hash = ${hash}`.pipe(
        Effect.orDie,
      )
    }
    return sessionOf(row, hash, now)
  })

  /** Whether this request may refresh the session's tokens now. */
  const claimed = Effect.fnUntraced(function* ({ id, tokens }: Row, now: number) {
    const rows = yield* sql`
      update console_sessions set refreshed_by = ${new Date(now + refreshMillis)}
      where id = ${id}::uuid and tokens = ${tokens} and coalesce(refreshed_by <= ${new Date(now)}, true) returning 1`
    return rows.length > 0
  }, Effect.orDie)

  /** Refreshes the tokens and writes them, also where the request that needs them is given up meanwhile. */
  const refreshed = Effect.fnUntraced(function* (row: Row, tokens: Tokens & { readonly refresh: string }) {
    const next = yield* client.refresh(row.issuer, tokens)
    const { bytes, kid } = sealedAt(row.id, next)
    yield* sql`
      update console_sessions set kid = ${kid}, tokens = ${bytes}, refreshed_by = null,
        tokens_until = ${next.until === null ? null : new Date(next.until)}
      where id = ${row.id}::uuid and tokens = ${row.tokens}`.pipe(Effect.orDie)
    return next.access
  }, Effect.uninterruptible)

  /** The access token, or null where another request is refreshing the tokens. */
  const tokenNow = Effect.fnUntraced(function* (hash: Uint8Array) {
    const row = yield* live(hash)
    if (row === undefined) return yield* new InvalidToken()
    const now = yield* Clock.currentTimeMillis
    const { refresh, ...tokens } = tokensOf(row)
    const left = tokens.until === null ? Infinity : tokens.until - now
    // Without a refresh token the session ends with its access token.
    if (left > aheadMillis || refresh === null) return tokens.access
    if (!(yield* claimed(row, now))) return left > 0 ? tokens.access : null
    return yield* refreshed(row, { ...tokens, refresh }).pipe(
      Effect.catchTag("SignInFailed", () =>
        sql`delete from console_sessions where id = ${row.id}::uuid`.pipe(
          Effect.orDie,
          Effect.andThen(Effect.fail(new InvalidToken())),
        )),
      Effect.catchTag(
        "DependencyUnavailable",
        (away) =>
          sql`update console_sessions set refreshed_by = null where id = ${row.id}::uuid`.pipe(
            Effect.orDie,
            Effect.andThen(left > 0 ? Effect.succeed(tokens.access) : Effect.fail(away)),
          ),
      ),
    )
  })

  const accessToken = Effect.fn("ConsoleSessions.accessToken")(function* ({ hash }: ConsoleSession) {
    for (let n = 0; n < look.times; n++) {
      const found = yield* tokenNow(hash)
      if (found !== null) return found
      yield* Effect.sleep(look.millis)
    }
    return yield* new DependencyUnavailable({ detail: "The sign-in is being renewed: try again" })
  })

  const close = Effect.fn("ConsoleSessions.close")(
    function* ({ accountId, hash, id, personId }: ConsoleSession, everywhere: boolean) {
      const row = yield* live(hash)
      yield* run(Effect.gen(function* () {
        const gone = yield* sql`
          delete from console_sessions where id = ${id}::uuid or ${everywhere} and (
            account_id = ${accountId}::uuid
            or person_id in (select p.id from people p where ${personId}::text in (p.id, p.merged_into))
            or person_id = ${personId}) returning 1`
        if (gone.length === 0) return
        yield* audit.append({
          action: "console-session.closed",
          actor: actorOf({ accountId, personId }),
          subject: `console-session:${id}`,
          outcome: "done",
          details: { everywhere, sessions: gone.length },
        })
      }))
      return row === undefined ? null : yield* client.signOut(row.issuer, tokensOf(row))
    },
    Effect.provideService(Database, database),
  )

  const hint = Effect.fn("ConsoleSessions.hint")(
    hintOf(mailIssuers, directoryNames),
    Effect.provideService(Database, database),
  )

  return ConsoleSessions.of({ open, hint, find, watch, audits, accessToken, close })
})

const cellOf = (row: string) => ({ table: "console_sessions", column: "tokens", row })
