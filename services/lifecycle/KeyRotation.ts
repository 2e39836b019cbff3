/**
 * Rotation of signing keys: announced -> published -> active -> retiring -> retired, or compromised. Consumers believe
 * only keys that they had committed to earlier, so the two keys after the signing one are always known by their
 * thumbprints, and each key's first message names the two that follow it (docs/keys.md).
 *
 * A transition is announced to every project with a time before which no project switches; once every project has the
 * announcement in its history, the next key is published. From that time on each project switches by itself, at a
 * position of its own history, as soon as its consumers have acknowledged the announcement, and at the deadline in any
 * case: a consumer that has not acknowledged by then is refused until it takes a snapshot. When the last project has
 * switched, the old key only verifies (Keys/Retiring), and later its private key is destroyed.
 *
 * A compromised key leaves the key set at once and signs nothing more. Projects switch to the next key with the event
 * that says so, every consumer takes a snapshot, and whatever the thief may have announced is void.
 *
 * Due steps are read from the tables, at any time and by any number of processes (`advance`); a step whose process was
 * killed stays due.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import { Vault } from "../platform/security/Vault.ts"
import type { KeyRow, KeyState } from "./Keys/KeyGeneration.ts"
import { moving } from "./Keys/ProjectKeySwitch.ts"
import { ripe } from "./Keys/KeyRetirement.ts"
import { keyStateChanges } from "./Keys/KeyStateChange.ts"
import { type Standings, standings } from "./Keys/KeyStatus.ts"
import { unsaidUnder } from "./Keys/PendingControlMessages.ts"
import { SigningKeys } from "./SigningKeys.ts"

export type { KeyStanding, Standings, TransitionStanding } from "./Keys/KeyStatus.ts"

/** The key cannot change its state so; the message is a line for the operator. */
export class KeyRefused extends Schema.TaggedError<KeyRefused>()("KeyRefused", { message: Schema.String }) {}

type Refusable<A = void> = Effect.Effect<A, KeyRefused | SqlError.SqlError>

interface TransitionRow {
  readonly id: bigint
  readonly successor: string
  readonly state: KeyState
  readonly not_before: Date
  readonly deadline_at: Date
}

const refused = (message: string) => new KeyRefused({ message })

export class KeyRotation extends Context.Service<KeyRotation, {
  readonly list: Effect.Effect<Standings, SqlError.SqlError>
  /**
   * Begins a transition to the next key, no earlier than `notBefore` (milliseconds since 1970); returns the key's kid.
   * The audit keeps `reason`.
   */
  readonly announce: (notBefore: number, reason?: string) => Refusable<string>
  /** The same for a caller with a transaction: makes keys outside of it, and gives what announces within. */
  readonly announcing: (notBefore: number, reason: string) => Effect.Effect<Refusable<string>, SqlError.SqlError>
  /** Puts the announced successor into the key set now, even where projects lack the announcement; returns its kid. */
  readonly publish: (reason?: string) => Refusable<string>
  /**
   * Lets projects switch from now on; with `force`, without waiting for acknowledgements. Returns the successor's kid.
   */
  readonly activate: (options: { readonly force: boolean; readonly reason?: string }) => Refusable<string>
  /** Destroys the private key of a retiring key that has verified long enough. */
  readonly retire: (kid: string, reason?: string) => Refusable
  /** Takes a stolen key out of use, whatever its state; returns the kid of the key that is active then. */
  readonly compromise: (kid: string, reason: string) => Refusable<string>
  /** The same for a caller with a transaction, as `announcing`. */
  readonly compromising: (kid: string, reason: string) => Effect.Effect<Refusable<string>, SqlError.SqlError>
  /**
   * Switches at once to the latest of these keys, where it is not in use here yet: it signed events of a history that
   * this database lost, so the key before it must not sign again. Returns whether it switches.
   */
  readonly resume: (kids: ReadonlyArray<string>) => Effect.Effect<boolean, SqlError.SqlError>
  /** Does some of the due steps; returns whether more may be due at once. */
  readonly advance: Effect.Effect<boolean, SqlError.SqlError>
}>()("bailiwick/services/lifecycle/KeyRotation") {
  /** `deadlineMillis`: how long after `notBefore` a project waits for its consumers. */
  static readonly layer = ({ deadlineMillis }: { readonly deadlineMillis: number }) =>
    Layer.effect(
      KeyRotation,
      Effect.gen(function* () {
        const { sql } = yield* Database
        const audit = yield* Audit
        const { ensure } = yield* SigningKeys
        const { after, alone, changing, move, prepared } = keyStateChanges(sql, yield* Vault, ensure)
        const { switchSome, tell } = yield* moving
        const list = yield* standings

        const recorded = (action: string, kid: string, actor: "operator" | "system", reason?: string) =>
          Effect.flatMap(CurrentOperator, (operator) =>
            audit.append({
              action: `signing-key.${action}`,
              actor: actor === "operator" ? operator : actor,
              subject: `signing-key:${kid}`,
              outcome: "done",
              decision: true,
              ...(reason === undefined ? {} : { details: { reason } }),
            }))

        const open = Effect.map(
          sql<TransitionRow>`
            select n.id, n.successor, k.state, n.not_before, n.deadline_at
            from lifecycle_key_news n join signing_keys k on k.kid = n.successor where n.ended_at is null`,
          ([row]) => row ?? null,
        )
        const mustBeOpen = Effect.flatMap(
          open,
          (row) => row === null ? Effect.fail(refused("no transition is announced")) : Effect.succeed(row),
        )
        const active = Effect.map(
          sql<{ kid: string }>`select kid from signing_keys where state = 'active'`,
          ([row]) => row!.kid,
        )
        const now = Effect.map(Clock.currentTimeMillis, (millis) => new Date(millis))

        /** Adds an announcement for every project; with a successor it is a transition. */
        const inform = Effect.fnUntraced(
          function* (compromised: string | null, successor: string | null, notBefore: Date, waits = deadlineMillis) {
            const at = yield* now
            yield* (successor === null
              ? sql`
                insert into lifecycle_key_news (id, compromised, created_at, ended_at)
                select coalesce(max(id), 0) + 1, ${compromised}, ${at}, ${at} from lifecycle_key_news`
              : sql`
                insert into lifecycle_key_news (id, compromised, successor, not_before, deadline_at, created_at)
                select coalesce(max(id), 0) + 1, ${compromised}, ${successor}, ${notBefore},
                  ${new Date(notBefore.getTime() + waits)}, ${at}
                from lifecycle_key_news`)
          },
        )

        const announcing = Effect.fn("KeyRotation.announcing")((notBefore: number, reason?: string) =>
          prepared(
            2,
            Effect.fnUntraced(function* (follow) {
              const under = yield* open
              if (under !== null) return yield* refused(`a transition to ${under.successor} is under way`)
              const [successor] = yield* follow(yield* active)
              yield* inform(null, successor!, new Date(Math.max(notBefore, yield* Clock.currentTimeMillis)))
              yield* recorded("announce", successor!, "operator", reason)
              return successor!
            }),
          )
        )

        const announce = Effect.fn("KeyRotation.announce")((notBefore: number, reason?: string) =>
          Effect.flatten(announcing(notBefore, reason))
        )

        const publish = Effect.fn("KeyRotation.publish")((reason?: string) =>
          alone(Effect.gen(function* () {
            const { state, successor } = yield* mustBeOpen
            if (state !== "announced") return yield* refused(`${successor} is ${state} already`)
            yield* move(successor, "published", yield* now)
            yield* recorded("publish", successor, "operator", reason)
            return successor
          }))
        )

        const activate = Effect.fn("KeyRotation.activate")((
          { force, reason }: { readonly force: boolean; readonly reason?: string },
        ) =>
          alone(Effect.gen(function* () {
            const { id, successor } = yield* mustBeOpen
            const at = yield* now
            const deadline = force ? at : new Date(at.getTime() + deadlineMillis)
            yield* sql`
              update lifecycle_key_news
              set not_before = least(not_before, ${at}), deadline_at = least(deadline_at, ${deadline})
              where id = ${id}`
            yield* recorded(force ? "force" : "activate", successor, "operator", reason)
            return successor
          }))
        )

        const retireRipe = (only: string | null, actor: "operator" | "system", reason?: string) =>
          alone(Effect.gen(function* () {
            const at = yield* now
            const keys = yield* sql<{ kid: string }>`
              select k.kid from signing_keys k
              where ${ripe(sql, at)} and k.kid = coalesce(${only}::text, k.kid) order by k.succession`
            for (const { kid } of keys) {
              yield* move(kid, "retired", at)
              yield* recorded("retire", kid, actor, reason)
            }
            return keys.length > 0
          }))

        const retire = Effect.fn("KeyRotation.retire")(function* (kid: string, reason?: string) {
          const [row] = yield* sql<{ state: KeyState }>`select state from signing_keys where kid = ${kid}`
          if (row === undefined) return yield* refused("there is no such key")
          if (row.state !== "retiring") return yield* refused(`it is ${row.state}: only a retiring key is retired`)
          if (!(yield* retireRipe(kid, "operator", reason))) {
            return yield* refused("it still verifies: for seven days, and until streams were given what it signed")
          }
        })

        const compromising = Effect.fn("KeyRotation.compromising")((kid: string, reason: string) =>
          prepared(
            3,
            Effect.fnUntraced(function* (follow) {
              // A process that is storing messages of this key either stores them first, or finds the key gone.
              const [key] = yield* sql<Pick<KeyRow, "state">>`
              select state from signing_keys where kid = ${kid} for no key update`
              if (key === undefined) return yield* refused("there is no such key")
              if (key.state === "retired" || key.state === "compromised") {
                return yield* refused(`it is ${key.state} already`)
              }
              const at = yield* now
              const under = yield* open
              const [next] = key.state === "active" || under?.successor === kid ? yield* follow(kid) : []
              yield* move(kid, "compromised", at)
              // No receiver believes these messages any more: each delivery would stop its stream again.
              yield* sql`delete from lifecycle_stream_messages o where ${unsaidUnder(sql, kid)}`
              // The key that replaces the compromised one: at once where that was active, else in a transition of its
              // own.
              const lead = key.state === "active" ? under?.successor ?? next! : under?.successor === kid ? next! : null
              if (lead !== null && under !== null) {
                yield* sql`update lifecycle_key_news set ended_at = ${at} where id = ${under.id}`
              }
              if (lead !== null) yield* move(lead, key.state === "active" ? "active" : "published", at)
              const notBefore = under === null || under.not_before < at ? at : under.not_before
              yield* inform(kid, key.state === "active" ? null : lead, notBefore)
              yield* recorded("compromise", kid, "operator", reason)
              const signs = yield* active
              yield* follow(lead ?? under?.successor ?? signs)
              return signs
            }),
          )
        )

        const compromise = Effect.fn("KeyRotation.compromise")((kid: string, reason: string) =>
          Effect.flatten(compromising(kid, reason))
        )

        const resume = Effect.fn("KeyRotation.resume")(function* (kids: ReadonlyArray<string>) {
          const coming = sql<{ kid: string }>`
            select kid from signing_keys
            where kid = any(${[...kids]}::text[]) and state in ('announced', 'published')
            order by succession desc limit 1`
          if ((yield* coming).length === 0) return false
          return yield* changing(
            3,
            Effect.fnUntraced(function* (follow) {
              const [latest] = yield* coming
              if (latest === undefined) return false
              const at = yield* now
              yield* sql`update lifecycle_key_news set ended_at = ${at} where ended_at is null`
              // The keys before the latest were in use as well, and verify messages that are still on their way.
              yield* sql`
                update signing_keys k set state = 'retiring', changed_at = ${at} from signing_keys l
                where l.kid = ${latest.kid} and k.succession < l.succession and k.state in ('announced', 'published')`
              yield* move(latest.kid, "published", at)
              yield* inform(null, latest.kid, at, 0)
              yield* recorded("resume", latest.kid, "system")
              yield* follow(latest.kid)
              return true
            }),
          )
        })

        /** Ends a transition once every project has switched and the old key has nothing left to sign. */
        const settle = ({ id, successor }: TransitionRow) =>
          alone(Effect.gen(function* () {
            // A new project takes its first key under that key's lock: from here on none takes the old one.
            const old = yield* sql<{ kid: string }>`
              select kid from signing_keys where state = 'active' for no key update`
            const at = yield* now
            const ended = yield* sql`
              update lifecycle_key_news set ended_at = ${at}
              where id = ${id} and ended_at is null
                and not exists (select from lifecycle_project_keys p where p.kid <> ${successor})
                and not exists (
                  select from lifecycle_key_places a
                  join lifecycle_heads h on h.project_id = a.project_id and (h.epoch, h.position) >= (a.epoch, a.position)
                  left join lifecycle_signed s on s.project_id = a.project_id
                  where a.kid = ${successor} and ((s.epoch, s.position) >= (a.epoch, a.position)) is not true)
              returning id`
            if (ended.length === 0) return false
            for (const { kid } of old) yield* move(kid, "retiring", at)
            yield* move(successor, "active", at)
            yield* recorded("switched", successor, "system")
            return true
          }))

        const publishTold = ({ id }: TransitionRow) =>
          alone(Effect.gen(function* () {
            const row = yield* open
            if (row?.id !== id || row.state !== "announced") return
            yield* move(row.successor, "published", yield* now)
            yield* recorded("publish", row.successor, "system")
          }))

        const transit = Effect.fnUntraced(function* (row: TransitionRow) {
          if (row.state === "announced") return yield* Effect.as(publishTold(row), true)
          if ((yield* now) < row.not_before) return false
          // The new key's first message names the two keys that follow it, so these have to exist.
          if ((yield* after(row.successor)).length < 2) yield* changing(3, (follow) => follow(row.successor))
          return (yield* switchSome(row)) > 0 || (yield* settle(row))
        })

        const advance = Effect.gen(function* () {
          if ((yield* tell) > 0) return true
          const row = yield* open
          if (row !== null && (yield* transit(row))) return true
          const due = yield* sql`select from signing_keys k where ${ripe(sql, yield* now)} limit 1`
          return due.length > 0 && (yield* retireRipe(null, "system"))
        }).pipe(Effect.withSpan("KeyRotation.advance"))

        return KeyRotation.of({
          list,
          announce,
          announcing,
          publish,
          activate,
          retire,
          compromise,
          compromising,
          resume,
          advance,
        })
      }),
    )
}
