/** The keys that sign lifecycle messages, for operators: how they stand, and their next step (docs/keys.md). */
import { Clock, Context, Effect, Layer } from "effect"
import type { SqlError } from "effect/sql"
import type { PersonId } from "../../schemas/BrandedIds.ts"
import type { SigningKeyRing } from "../../schemas/identity/SigningKeyView.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import {
  type InsufficientUserAuthentication,
  InvalidState,
  type RoleRequired,
} from "../../schemas/problems/IdentityProblems.ts"
import { type KeyRefused, KeyRotation, type Standings } from "../lifecycle/KeyRotation.ts"
import { CurrentOperator } from "../platform/observability/CurrentOperator.ts"
import { mustOperate } from "./OperatorRole.ts"

type Refused = RoleRequired | SqlError.SqlError

interface Asked {
  readonly personId: PersonId
  readonly reason: string
}

/** The time before which no project switches, where the operator names none. */
const delayMillis = 86_400_000

/** The key ring as the contract has it. */
export const ringView = ({ keys, pins, transition }: Standings): SigningKeyRing => ({
  items: keys.map(({ since, ...key }) => ({ ...key, since: since.toISOString() })),
  pins,
  transition: transition === null ? null : {
    successor: transition.successor,
    not_before: transition.notBefore.toISOString(),
    deadline_at: transition.deadlineAt.toISOString(),
    untold: transition.untold,
    switched: transition.switched,
    left: transition.left,
    waiting: transition.waiting.map(({ consumers, projectId }) => ({ project_id: projectId, consumers })),
  },
})

/** States of keys that can be stolen: the others have no private key any more. */
const alive = ["announced", "published", "active", "retiring"] as const

export class OperatorKeys extends Context.Service<OperatorKeys, {
  readonly list: (personId: PersonId) => Effect.Effect<SigningKeyRing, Refused>
  /**
   * Begins a transition to the next key, no earlier than `notBefore`, a day from now where that is null; InvalidState
   * where one is under way. Makes keys outside of any transaction, and gives the command, which runs in the caller's.
   */
  readonly announce: (
    asked: Asked & { readonly notBefore: number | null },
  ) => Effect.Effect<Effect.Effect<SigningKeyRing, InvalidState | Refused>, Refused>
  /**
   * Puts the announced key into the key set in the caller's transaction, also where projects lack the announcement;
   * InvalidState where none is announced.
   */
  readonly publish: (asked: Asked) => Effect.Effect<SigningKeyRing, InvalidState | Refused>
  /** Lets projects switch from now on, in the caller's transaction; InvalidState where no transition is under way. */
  readonly activate: (
    asked: Asked & { readonly force: boolean },
  ) => Effect.Effect<SigningKeyRing, InvalidState | Refused>
  /** Ends a retiring key in the caller's transaction; InvalidState where it still verifies, or does not retire. */
  readonly retire: (
    asked: Asked & { readonly kid: string },
  ) => Effect.Effect<SigningKeyRing, InvalidState | NotFound | Refused>
  /**
   * Takes a stolen key out of use, as `announce` does it; InvalidState where it is. `stepUp` is the check of the
   * operator's sign-in, which comes after the role's.
   */
  readonly compromise: (
    asked: Asked & {
      readonly kid: string
      readonly stepUp: Effect.Effect<void, InsufficientUserAuthentication>
    },
  ) => Effect.Effect<
    Effect.Effect<SigningKeyRing, InvalidState | Refused>,
    InsufficientUserAuthentication | NotFound | Refused
  >
}>()("bailiwick/services/operations/OperatorKeys") {
  static readonly layer = Layer.effect(
    OperatorKeys,
    Effect.gen(function* () {
      const operating = yield* mustOperate
      const rotation = yield* KeyRotation
      const ring = Effect.map(rotation.list, ringView)

      const list: OperatorKeys["Service"]["list"] = Effect.fn("OperatorKeys.list")(function* (personId) {
        yield* operating(personId)
        return yield* ring
      })

      /** Runs a change as the operator; a refusal is InvalidState. */
      const changed = Effect.fnUntraced(function* (
        { personId }: Asked,
        change: Effect.Effect<unknown, KeyRefused | SqlError.SqlError>,
        state: string,
        ...allowed: ReadonlyArray<string>
      ) {
        yield* operating(personId, "share")
        yield* Effect.provideService(change, CurrentOperator, `person:${personId}`).pipe(
          Effect.catchTag(
            "KeyRefused",
            ({ message: detail }) => Effect.fail(new InvalidState({ detail, state, allowed })),
          ),
        )
        return yield* ring
      })

      const announce: OperatorKeys["Service"]["announce"] = Effect.fn("OperatorKeys.announce")(
        function* ({ notBefore, ...asked }) {
          yield* operating(asked.personId)
          const at = notBefore ?? (yield* Clock.currentTimeMillis) + delayMillis
          return changed(asked, yield* rotation.announcing(at, asked.reason), "in_transition", "settled")
        },
      )

      const publish: OperatorKeys["Service"]["publish"] = Effect.fn("OperatorKeys.publish")((asked) =>
        Effect.flatMap(
          Effect.map(rotation.list, ({ keys, transition }) => keys.find(({ kid }) => kid === transition?.successor)),
          (successor) => changed(asked, rotation.publish(asked.reason), successor?.state ?? "settled", "announced"),
        )
      )

      const activate: OperatorKeys["Service"]["activate"] = Effect.fn("OperatorKeys.activate")(
        ({ force, ...asked }) =>
          changed(asked, rotation.activate({ force, reason: asked.reason }), "settled", "in_transition"),
      )

      const known = Effect.fnUntraced(function* (kid: string) {
        const { keys } = yield* rotation.list
        return keys.find((one) => one.kid === kid) ?? (yield* new NotFound())
      })

      const retire: OperatorKeys["Service"]["retire"] = Effect.fn("OperatorKeys.retire")(
        function* ({ kid, ...asked }) {
          yield* operating(asked.personId)
          const { state } = yield* known(kid)
          return yield* changed(asked, rotation.retire(kid, asked.reason), state, "retiring")
        },
      )

      const compromise: OperatorKeys["Service"]["compromise"] = Effect.fn("OperatorKeys.compromise")(
        function* ({ kid, stepUp, ...asked }) {
          yield* operating(asked.personId)
          const key = yield* known(kid)
          yield* stepUp
          return changed(asked, yield* rotation.compromising(kid, asked.reason), key.state, ...alive)
        },
      )

      return OperatorKeys.of({ list, announce, publish, activate, retire, compromise })
    }),
  )
}
