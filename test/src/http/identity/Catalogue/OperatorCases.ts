/** Operations of an operator on the whole installation. */
import { randomBytes, randomUUID } from "node:crypto"
import { Clock, Effect } from "effect"
import { Database } from "../../../../../services/platform/database/Database.ts"
import { outgoingMail } from "../../../../support/TestMails.ts"
import { heldPerson } from "../../../../support/TestHolds.ts"
import { intakeReject } from "../../../../support/TestRejects.ts"
import { day, reason } from "../../../../support/Fixtures.ts"
import { project } from "../../../../support/TestIdentity.ts"
import { ask } from "../IdentityClient.ts"
import type { IdentityStage } from "../IdentityStage.ts"
import type { Asked, Case } from "./Case.ts"

const operates = { by: "operator", second: "operator", status: 200 } as const
const nothing = () => Effect.succeed({})

/** No transition to another key is under way. */
const settledKeys = Effect.gen(function* () {
  const { sql } = yield* Database
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`update lifecycle_key_news set ended_at = ${now} where ended_at is null`
})

/** A transition is under way; the answer of its announcement. */
const announced = Effect.fnUntraced(function* ({ people }: IdentityStage) {
  yield* settledKeys
  return yield* ask(people.operator, "POST", "/v1/operations/signing-keys/announce", { reason })
})

/** The same, and the next key is not in the key set. */
const unpublished = Effect.fnUntraced(function* (stage: IdentityStage) {
  yield* announced(stage)
  const { sql } = yield* Database
  yield* sql`update signing_keys set state = 'announced' where state = 'published'`
})

const activeKey = (stage: IdentityStage) =>
  Effect.map(announced(stage), ({ body }): Asked => {
    const { kid } = body.items.find(({ state }: { state: string }) => state === "active")
    return { params: { kid }, body: { reason } }
  })

/** A key that has verified long enough. */
const ripeKey = Effect.fnUntraced(function* (stage: IdentityStage) {
  yield* activeKey(stage)
  const { sql } = yield* Database
  const kid = randomBytes(32).toString("base64url")
  const changed = new Date((yield* Clock.currentTimeMillis) - 8 * day)
  yield* sql`
    insert into signing_keys
    select (jsonb_populate_record(k, jsonb_build_object('kid', ${kid}::text, 'state', 'retiring',
      'changed_at', ${changed}::timestamptz, 'succession', (select min(succession) from signing_keys) - 1))).*
    from signing_keys k where k.state = 'active'`
  return { params: { kid }, body: { reason } }
})

/** A message that waited for its account in vain. */
const onReject = () =>
  Effect.map(intakeReject({ accountId: randomUUID() }), (reject_id) => ({ params: { reject_id }, body: { reason } }))

/** A failed mail, of a kind that no process sends. */
const onMail = () => Effect.map(outgoingMail(), (mail_id) => ({ params: { mail_id }, body: { reason } }))

/** A person whom an identity provider holds. */
const onHold = () => Effect.map(heldPerson(), (person_id) => ({ params: { person_id }, body: { reason } }))

export const operator: ReadonlyArray<Case> = [
  { operation: "signing-keys.listSigningKeys", ...operates, asked: nothing },
  {
    operation: "signing-keys.announceSigningKey",
    ...operates,
    asked: () => Effect.as(settledKeys, { body: { reason } }),
  },
  {
    operation: "signing-keys.publishSigningKey",
    ...operates,
    asked: (stage) => Effect.as(unpublished(stage), { body: { reason } }),
  },
  {
    operation: "signing-keys.activateSigningKey",
    ...operates,
    asked: (stage) => Effect.as(announced(stage), { body: { reason } }),
  },
  { operation: "signing-keys.retireSigningKey", ...operates, asked: ripeKey },
  { operation: "signing-keys.compromiseSigningKey", ...operates, asked: activeKey },
  { operation: "upkeep.installation", ...operates, asked: nothing },
  // Of an open installation: while it is held, other operations of the catalogue would be refused.
  { operation: "upkeep.openInstallation", ...operates, asked: () => Effect.succeed({ body: { reason } }) },
  { operation: "rollouts.listRollouts", ...operates, asked: () => Effect.succeed({ query: "?limit=1" }) },
  {
    operation: "rollouts.decideRollout",
    ...operates,
    asked: (stage) =>
      Effect.map(
        project(stage.institution),
        (project_id) => ({ params: { project_id }, body: { action: "hold", reason } }),
      ),
  },
  {
    operation: "upkeep.listIntakeRejects",
    ...operates,
    asked: () => Effect.succeed({ query: "?state=waiting&limit=1" }),
  },
  { operation: "upkeep.retryIntakeReject", ...operates, asked: onReject },
  { operation: "upkeep.discardIntakeReject", ...operates, asked: onReject },
  { operation: "upkeep.listOutgoingMails", ...operates, asked: () => Effect.succeed({ query: "?limit=1" }) },
  { operation: "upkeep.retryOutgoingMail", ...operates, asked: onMail },
  { operation: "upkeep.forgetOutgoingMail", ...operates, asked: onMail },
  { operation: "upkeep.listPersonHolds", ...operates, asked: () => Effect.succeed({ query: "?limit=1" }) },
  { operation: "upkeep.releasePerson", ...operates, asked: onHold },
]
