/** Every file that writes to the audit says of its records whether they are decisions, or stands here as one of none. */
import { assert, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** What these files record is no decision about access or ownership, or is a decision's consequence. */
const others = [
  "services/accounts/ApiKeys.ts",
  "services/console/ConsoleSessions.ts",
  "services/console/EmbedLinks.ts",
  "services/decisions/Invitations.ts",
  "services/decisions/NoticeSettings.ts",
  "services/directory/Directory.ts",
  "services/event-streams/StreamDelivery.ts",
  "services/event-streams/Streams/Configuration.ts",
  "services/event-streams/Streams/Status.ts",
  "services/links/Links/Prove.ts",
  "services/notifications/Inbox.ts",
  "services/notifications/Preferences.ts",
  "services/operations/OperatorMails.ts",
  "services/operations/OperatorRejects.ts",
  "services/people/Assertions/CheckAssertion.ts",
  "services/people/Assertions/StartAssertion.ts",
  "services/people/CredentialActions/CompleteAction.ts",
  "services/people/CredentialActions/RefuseProof.ts",
  "services/people/CredentialActions/StartAction.ts",
  "services/people/NewPeople.ts",
  "services/projects/ProviderJobs/SettleJob.ts",
  "services/projects/ReviewedJobs/SettleReviewedJob.ts",
  "services/signals/SignalPolling.ts",
  "services/transfers/TransferRecovery.ts",
  "services/transparency/DecisionLog.ts",
  "services/webhooks/DeadLetters.ts",
  "services/webhooks/FailingWebhooks.ts",
  "services/webhooks/Replays.ts",
  "services/webhooks/WaitingDeliveries.ts",
  "services/webhooks/WebhookHolds.ts",
  "services/webhooks/Webhooks.ts",
]

it("every file that appends to the audit is a recorder of decisions, or known not to be one", () => {
  const files = readdirSync("services", { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))
  const appending = files.filter((path) => readFileSync(path, "utf8").includes("audit.append("))
  const silent = appending.filter((path) => !/\bdecision: /.test(readFileSync(path, "utf8")))
  assert.deepStrictEqual(silent.sort(), others)
  assert.isAbove(appending.length - silent.length, 15)
})
