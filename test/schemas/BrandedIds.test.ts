/**
 * Branded ids. The calls that swap ids are compiled and never made: `deno task types` fails where one of them compiles,
 * since its `@ts-expect-error` then expects nothing.
 */
import type { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Ids from "../../schemas/BrandedIds.ts"
import { Id, Uuid } from "../../schemas/Wire.ts"
import type { AccessReviews } from "../../services/access/AccessReviews.ts"
import type { AccessVersions } from "../../services/access/AccessVersions.ts"
import type { ServiceGrants } from "../../services/access/ServiceGrants.ts"
import type { Inbox } from "../../services/notifications/Inbox.ts"
import type { AccountDeliveries } from "../../services/webhooks/AccountDeliveries.ts"
import { seenKeyOf } from "../../services/webhooks/Deliveries/SeenKey.ts"
import type { DeliveryRecords } from "../../services/webhooks/DeliveryRecords.ts"
import type { DeliveryStats } from "../../services/webhooks/DeliveryStats.ts"
import { sampleBody } from "../../services/webhooks/ReplaySample.ts"
import type { Replays } from "../../services/webhooks/Replays.ts"
import type { Webhooks } from "../../services/webhooks/Webhooks.ts"
import type { ConcurrencyLimiter } from "../../services/webhooks/Sender/ConcurrencyLimiter.ts"
import type { Principal } from "../../schemas/api/CredentialsApi.ts"
import type { ApiKeys } from "../../services/accounts/ApiKeys.ts"
import type { KeyUses } from "../../services/authentication/KeyUses.ts"
import type { AccountReads } from "../../services/accounts/AccountReads.ts"
import type { PolicyDecisions } from "../../services/decisions/PolicyDecisions.ts"
import type { EventLog } from "../../services/lifecycle/EventLog.ts"
import type { memberships } from "../../services/people/Memberships.ts"
import { heldIn, type Roles, standingFrom, standingIn, standingOf } from "../../services/people/Roles.ts"
import type { Transfers } from "../../services/transfers/Transfers.ts"
import { revokedFrom } from "../../services/transfers/Transfers/DomainMove.ts"
import type { TransferState } from "../../services/transfers/Transfers/TransferState.ts"
import { reason } from "../support/Fixtures.ts"

const [ada, sam] = [Ids.PersonId.make("ada"), Ids.PersonId.make("sam")]
const [fern, portal] = [Ids.InstitutionId.make("fern"), Ids.ProjectId.make("portal")]
const accessId = Ids.AccessId.make("access")
const accessReview = Ids.AccessReviewId.make("access review")
const policyReview = Ids.PolicyReviewId.make("policy review")
const commandId = Ids.CommandId.make("command")
const [domainId, transferId] = [Ids.DomainId.make("domain"), Ids.TransferId.make("transfer")]
const delivery = Ids.DeliveryId.make("delivery")
const notification = Ids.NotificationId.make("notification")
const [event, source] = [Ids.EventId.make("event"), Ids.SourceEventId.make("source")]
const [account, webhook] = [Ids.AccountId.make("account"), Ids.WebhookId.make("webhook")]

const stepUp = Effect.void
const now = new Date(0)

const rolesSwapped = (sql: PgClient.PgClient, roles: Roles["Service"]) => [
  // @ts-expect-error: the institution's id stands for the person's
  roles.inInstitution(fern, ada),
  // @ts-expect-error: the project's id stands for the person's
  roles.toProject(portal, ada),
  // @ts-expect-error: the institution's id stands for the project's
  roles.toProject(ada, fern),
  // @ts-expect-error: the project's id stands for the other person's
  roles.independent(ada, portal),
  // @ts-expect-error: the institution's id stands for the project's
  roles.independent(ada, sam, fern),
  // @ts-expect-error: the project's id stands for the person's
  roles.fourEyes(portal, ada, sam),
  // @ts-expect-error: a text that is not known to be an id
  roles.isOperator("ada"),
  // @ts-expect-error: the institution's id stands for the person's
  standingIn(sql, fern, ada, now),
  // @ts-expect-error: the institution's id stands for the person's
  standingFrom("[]", fern, ada),
  // @ts-expect-error: the institution's id stands for the person's
  standingOf(fern, ada, []),
  // @ts-expect-error: the institution's id stands for the person's
  heldIn(sql, fern, sql`${fern}`, now),
]

const decisionsSwapped = (
  reviews: AccessReviews["Service"],
  grants: ServiceGrants["Service"],
  policies: PolicyDecisions["Service"],
) => [
  // @ts-expect-error: the institution's id stands for the person's
  reviews.approve({ personId: fern, institutionId: fern, reviewId: accessReview, reason, stepUp }),
  // @ts-expect-error: the person's id stands for the institution's
  reviews.approve({ personId: ada, institutionId: ada, reviewId: accessReview, reason, stepUp }),
  // @ts-expect-error: a review of another kind
  reviews.approve({ personId: ada, institutionId: fern, reviewId: policyReview, reason, stepUp }),
  // @ts-expect-error: the institution's id stands for the person's
  reviews.list(fern, ada),
  // @ts-expect-error: a review of another kind
  policies.approve({ personId: ada, reviewId: accessReview, role: "sponsor", reason, stepUp }),
  // @ts-expect-error: the project's id stands for the grant's
  grants.approve({ personId: ada, projectId: portal, grantId: portal, reason, expectedVersion: 1, stepUp }),
  // @ts-expect-error: the project's id stands for the person's
  grants.revokeAll(portal, portal, reason),
]

const eventsSwapped = ({ append }: EventLog["Service"]) => [
  // @ts-expect-error: the institution's id stands for the project's
  append({ kind: "account-disabled", projectId: fern, institutionId: fern, initiatedBy: "system" }),
  // @ts-expect-error: the project's id stands for the institution's
  append({ kind: "account-disabled", projectId: portal, institutionId: portal, initiatedBy: "system" }),
]

const makersSwapped = (versions: AccessVersions["Service"], { seat }: ReturnType<typeof memberships>) => {
  const access = { accessId, institutionId: fern, projectId: portal, personId: ada, role: "user" } as const
  const membership = { institutionId: fern, personId: ada, role: "sponsor", state: "active" } as const
  return [
    // @ts-expect-error: the institution's id stands for the maker's
    versions.record({ ...access, state: "active", madeBy: fern, approvedBy: [sam] }),
    // @ts-expect-error: the institution's id stands for an approver's
    versions.record({ ...access, state: "active", madeBy: sam, approvedBy: [fern] }),
    // @ts-expect-error: the Access's id stands for the person's
    versions.record({ ...access, personId: accessId, state: "active", madeBy: sam, approvedBy: [] }),
    // @ts-expect-error: the institution's id stands for an approver's
    seat({ ...membership, madeBy: sam, approvedBy: [fern] }),
  ]
}

const transfersSwapped = ({ accept, dkim, eligibility, find, read, settle }: Transfers["Service"]) => [
  // @ts-expect-error: the domain's id stands for the account's
  dkim(domainId, domainId),
  // @ts-expect-error: the transfer's id stands for the account's
  read(transferId, transferId),
  // @ts-expect-error: a text that is not known to be an id
  eligibility("account"),
  // @ts-expect-error: the domain's id stands for the transfer's
  read(account, domainId),
  // @ts-expect-error: the transfer's id stands for the domain's
  dkim(account, transferId),
  // @ts-expect-error: the domain's id stands for the transfer's
  settle(domainId),
  // @ts-expect-error: the domain's id stands for the transfer's
  find("id", domainId),
  // @ts-expect-error: the domain's id stands for the transfer's
  accept({ commandId, accountId: account, transferId: domainId, byToken: false, orgId: null, rotateDkim: false }),
  // @ts-expect-error: the account's id stands for the workspace's
  accept({ commandId, accountId: account, transferId, byToken: false, orgId: account, rotateDkim: false }),
  // @ts-expect-error: the transfer's id stands for the command's
  accept({ commandId: transferId, accountId: account, transferId, byToken: false, orgId: null, rotateDkim: false }),
]

const accountsSwapped = (reads: AccountReads["Service"], inbox: Inbox["Service"], slots: ConcurrencyLimiter<never>) => [
  // @ts-expect-error: the account's id stands for the domain's
  reads.domain(account, account),
  // @ts-expect-error: the domain's id stands for the account's
  inbox.markRead(domainId, notification),
  // @ts-expect-error: the account's id stands for the notification's
  inbox.markRead(account, account),
  // @ts-expect-error: the account's id stands for the webhook's, and the webhook's for the account's
  slots.reserve(account, webhook, 1),
]

const webhooksSwapped = (
  webhooks: Webhooks["Service"],
  replays: Replays["Service"],
  stats: DeliveryStats["Service"],
) => [
  // @ts-expect-error: the webhook's id stands for the account's, and the account's for the webhook's
  webhooks.remove(webhook, account),
  // @ts-expect-error: the account's id stands for the webhook's
  webhooks.rotate(account, account, 0),
  // @ts-expect-error: a text that is not known to be an id
  replays.test(account, "webhook"),
  // @ts-expect-error: the domain's id stands for the webhook's
  stats.ofWebhook(account, domainId, {}),
]

const deliveriesSwapped = (records: DeliveryRecords["Service"], replays: Replays["Service"]) => [
  // @ts-expect-error: the webhook's id stands for the delivery's
  records.get(account, webhook),
  // @ts-expect-error: the delivery's id stands for the account's, and the account's for the delivery's
  records.get(delivery, account),
  // @ts-expect-error: the webhook's id stands for the delivery's
  replays.one(account, webhook),
  // @ts-expect-error: the delivery's id stands for the webhook's
  replays.again(delivery, []),
]

const mailEventsSwapped = (list: AccountDeliveries["Service"]["list"]) => [
  // @ts-expect-error: the event's id here stands for its id on the mail platform
  seenKeyOf(account, event),
  // @ts-expect-error: the delivery's id stands for the event's
  sampleBody("email.sent", delivery, now),
  // @ts-expect-error: the id on the mail platform stands for the event's id here
  sampleBody("email.sent", source, now),
  // @ts-expect-error: the event's id here stands for its id on the mail platform
  list(account, { limit: 1, eventId: event }),
]

const credentialsSwapped = (state: TransferState) => [
  // @ts-expect-error: the domain's id stands for the credential's
  revokedFrom([{ id: domainId, domain_id: domainId, account_id: account }], state),
]

const keysSwapped = (keys: ApiKeys["Service"], uses: KeyUses["Service"], principal: Principal["Service"]) => [
  // @ts-expect-error: the account's id stands for the key's
  keys.revoke(principal, principal.accountId),
  // @ts-expect-error: the account's id stands for the key's
  uses.add(account),
]

describe("branded ids", () => {
  it("of different kinds do not swap", () => {
    for (
      const swapped of [
        rolesSwapped,
        decisionsSwapped,
        eventsSwapped,
        makersSwapped,
        transfersSwapped,
        accountsSwapped,
        webhooksSwapped,
        deliveriesSwapped,
        mailEventsSwapped,
        credentialsSwapped,
        keysSwapped,
      ]
    ) {
      assert.isFunction(swapped)
    }
  })

  it("are the same values and the same schemas as without their brands", () => {
    const foreign = new Set<unknown>([
      Ids.CommandId,
      Ids.SourceEventId,
      Ids.PersonId,
      Ids.InstitutionId,
      Ids.ProjectId,
      Ids.AccessId,
    ])
    const uuids = new Set<unknown>([
      Ids.AccountUuid,
      Ids.WebhookUuid,
      Ids.WorkspaceUuid,
      Ids.NotificationUuid,
      Ids.SmtpCredentialUuid,
      Ids.DeliveryUuid,
      Ids.ApiKeyId,
    ])
    for (const [name, id] of Object.entries(Ids)) {
      const checked = uuids.has(id)
      const text = checked ? "00000000-0000-4000-8000-000000000000" : "any text"
      assert.strictEqual(id.make(text), text, name)
      const plain = foreign.has(id) ? Schema.String : checked ? Uuid : Id
      assert.strictEqual(id.ast, plain.ast, name)
    }
  })
})
