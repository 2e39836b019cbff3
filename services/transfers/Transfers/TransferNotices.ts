/**
 * The texts of in-app notices for both sides. They go over the bus, so they contain no note, no address and no name.
 */
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import type { Notice } from "../../notifications/Notice.ts"
import { type DkimRecord, recordOf } from "../DkimKeys.ts"
import { type Circumstances, parties } from "./Addressees.ts"
import type { TransferState } from "./TransferState.ts"
import type { TransferEvent } from "./TransferCommands.ts"
import { appPath } from "../../platform/AppPaths.ts"

interface Wording {
  readonly severity: Notice["severity"]
  readonly title: string
  readonly source: string
  readonly target: string
}

const wordings: Readonly<Record<TransferEvent, (domain: string) => Wording>> = {
  initiated: (domain) => ({
    severity: "info",
    title: "Domain transfer requested",
    source: `${domain} was offered to another account.`,
    target: `${domain} was offered to you. Accept or decline it.`,
  }),
  accepted: (domain) => ({
    severity: "warning",
    title: "Domain transfer accepted",
    source: `The transfer of ${domain} was accepted. It can be stopped until the safety window ends.`,
    target: `You accepted ${domain}. It becomes yours when the safety window ends.`,
  }),
  declined: (domain) => ({
    severity: "info",
    title: "Domain transfer declined",
    source: `The transfer of ${domain} was declined.`,
    target: `You declined ${domain}.`,
  }),
  cancelled: (domain) => ({
    severity: "info",
    title: "Domain transfer cancelled",
    source: `The transfer of ${domain} was cancelled.`,
    target: `The offer of ${domain} was withdrawn.`,
  }),
  stopped: (domain) => ({
    severity: "warning",
    title: "Domain transfer stopped",
    source: `The transfer of ${domain} was stopped. It stays where it is.`,
    target: `The transfer of ${domain} was stopped by its owner's side.`,
  }),
  expired: (domain) => ({
    severity: "info",
    title: "Domain transfer expired",
    source: `The offer of ${domain} was not accepted in time.`,
    target: `The offer of ${domain} has expired.`,
  }),
  completed: (domain) => ({
    severity: "success",
    title: "Domain transfer completed",
    source: `${domain} now belongs to the other account.`,
    target: `${domain} is yours.`,
  }),
  forced: (domain) => ({
    severity: "critical",
    title: "Domain transferred by the platform",
    source: `An administrator of the platform moved ${domain} to another account.`,
    target: `An administrator of the platform moved ${domain} to you.`,
  }),
  overtaken: (domain) => ({
    severity: "warning",
    title: "Domain transfer ended",
    source: `The transfer of ${domain} ended: the domain changed meanwhile.`,
    target: `The transfer of ${domain} ended: the domain changed meanwhile.`,
  }),
  superseded: (domain) => ({
    severity: "warning",
    title: "Domain transfer ended",
    source: `The transfer of ${domain} ended: an administrator of the platform moved the domain.`,
    target: `The transfer of ${domain} ended: an administrator of the platform moved the domain.`,
  }),
  undeliverable: (domain) => ({
    severity: "warning",
    title: "Domain transfer reversed",
    source: `The transfer of ${domain} was reversed: the recipient can no longer take it.`,
    target: `The transfer of ${domain} was reversed: your account can no longer take it.`,
  }),
  extended: (domain) => ({
    severity: "warning",
    title: "Safety window extended",
    source: `The transfer of ${domain} can be stopped for longer than was said before.`,
    target: `The transfer of ${domain} takes effect later than was said before.`,
  }),
}

const published = ({ name, value }: DkimRecord) =>
  `Its mail gets a new DKIM key: publish the TXT record ${name} with the value ${value}`

/**
 * One notice for each party; the accounts in `mailed` get a mail with the same content, so the notice is not mailed.
 */
export const noticesOf = (
  state: TransferState,
  event: TransferEvent,
  { ended, key, revoked, silent }: Circumstances,
  mailed: ReadonlySet<AccountId>,
): ReadonlyArray<Notice> => {
  const { severity, source, target, title } = wordings[event](state.domainName)
  const bodyOf = (accountId: AccountId) =>
    [
      accountId === state.targetUserId ? target : source,
      ...(ended.has(accountId) ? ["The transfer that was under way has ended."] : []),
      ...(revoked.has(accountId) ? ["Your SMTP credentials for it were revoked."] : []),
      ...(key !== null && accountId === state.targetUserId ? [published(recordOf(state.domainName, key))] : []),
    ].join(" ")
  return [...parties(state)].filter((id) => !silent.has(id)).map((accountId): Notice => ({
    accountId,
    category: "domains",
    severity,
    title,
    body: bodyOf(accountId),
    href: appPath("domainTransfer", { transfer_id: state.id }),
    ...(mailed.has(accountId) ? { without: ["email"] } : {}),
  }))
}
