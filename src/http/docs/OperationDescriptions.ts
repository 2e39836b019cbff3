/** The description of each operation in the document, by the operation's id; docs/api has the reasons. */
export const descriptions: Readonly<Record<string, string>> = {
  health: "Needs no credential. Says nothing about the database: use it to restart a process that hangs.",
  ready: "`degraded` is 200 as well: without the broker commands succeed, and their messages wait. `not_ready` is 503.",

  getAccount: "`-1` is any number. Domains on their way to the account count at an acceptance, and not in `used`.",
  listWorkspaces: "The first is the default of an acceptance.",
  listDomains: "Each with its live transfer, and whether you may offer it.",
  getDomain: "Any other domain is 404.",
  createApiKey: "The key is `mail_k_` and 43 characters and has no expiry. The plan limits the number of active keys.",
  listApiKeys: "Without the keys themselves; `last_used_at` is exact to a minute.",
  revokeApiKey: "Requests with the key are refused from the answer on.",

  listWebhooks: "Active ones; `include_paused` adds paused ones. No secret.",
  createWebhook: "Verify requests with the `secret`: it is shown here and after a rotation only.",
  getWebhook: "`overlap_until` says until when the secret before a rotation signs as well.",
  updateWebhook:
    "Fields that are null or absent stay. A new URL serves the later attempts of deliveries that wait; one of another origin needs `headers` and `basic_auth` anew, where there are any. While a webhook is paused, events that arrive make no delivery, and its deliveries wait.",
  deleteWebhook: "Its deliveries stay readable by their ids.",
  rotateSecret:
    "For `overlap_seconds` both secrets sign `webhook-signature`; `X-Webhook-Signature` uses the new one at once.",
  testWebhook:
    "Sent whatever is subscribed. A paused webhook gets nothing: `queued` is false. Ten a minute and account.",
  replayWebhook:
    "Each gets a new cycle of attempts under its id, so a receiver knows repeats. Ten a minute and account.",
  streamDeliveries:
    "Server-Sent Events. A connection begins with the newest 50; `skipped` where more came at once. At least one event in ten seconds.",
  countReplay: "With the values that the POST would have. Ten a minute and account, beside the replays.",
  listDeliveries: "`total` counts what the filter leaves, exactly; a page past the end is empty.",
  getWebhookDelivery: "With the payload, the last answer's body and each attempt.",
  getDelivery:
    "`request` is the last attempt's, with the body byte for byte, masked signatures and no custom headers; null until an attempt has ended.",
  retryDelivery:
    "409 while an attempt is under way, and once it has ended. Sixty a minute and account, with cancellations.",
  cancelDelivery:
    "No attempt follows, and it can be replayed while its webhook exists. 409 while an attempt is under way, and once it has ended.",
  replayDelivery: "409 while it has not ended. A receiver that drops repeats by `webhook-id` knows it.",
  listAllDeliveries:
    "A page with a filter looks at some 20,000 deliveries: it may be short, and `next_after_id` leads on.",
  webhookStats:
    "Attempts by outcome, with their durations, for 30 days; an attempt counts once it is settled. `next_since` leads on.",
  oneWebhookStats: "As of all webhooks.",
  deliveryHours: "For an overview of many webhooks: each attempt counts in the hour in which it began.",
  listEventTypes: "What a receiver has to expect: the meaning, the usual members of `metadata`, and a whole body.",

  listNotifications: "Kept for 400 days, and the newest 10,000. `next_after_id` takes `limit` or `after_id`.",
  streamNotifications:
    "Server-Sent Events. `Last-Event-ID` resumes without a gap; after `reset` read the list anew. A comment comes every 15 seconds.",
  readAllNotifications: "What arrives during the call stays unread.",
  getNotificationPreferences:
    "Whether each category goes to the web, by email and to Slack; with the defaults filled in.",
  putNotificationPreferences: "Known categories and channels are merged, unknown ones ignored.",
  readNotification: "Marking it again changes nothing.",

  me: "Roles are listed with their state; what counts is decided where a role is needed.",
  freshness: "Ask before an operation that needs a fresh sign-in, to lead the person to one.",
  listSessions: "Networks are shown as /24, or /48 of IPv6.",
  listAuthenticators: "The last authenticator of the second factor is not removable.",
  credentialCapabilities:
    "Actions need a sign-in of the last 300 seconds, and `aal2` where the person has such an authenticator.",
  noticeSettings: "`digest`, where nothing was chosen: at most one mail an hour.",
  setNoticeSettings: "It counts from the next mail on. With `off`, what is due is never mailed later.",
  startCredentialAction:
    "A newer start of the same kind and target supersedes it. Secrets are in the first answer only: a replay has null.",
  completeCredentialAction:
    "Five bad proofs end the intent. Recovery codes are in the first answer only. A portal binding that came with the start has to come again.",

  startAssertion:
    "For a client of the issuer that `ASSERTION_CLIENTS` names, about a subject of that issuer. An unknown subject is answered like a person who has nothing enrolled. The challenge answers once.",
  checkAssertion:
    "A proof that does not hold is an answer, always of the same form; five of them, or five minutes, end the assertion. One-time codes are locked after five failures in a row (429), which leaves passkeys and recovery codes alone.",

  listAccessGrantReviews:
    "Four facts are kept apart: what was decided, delivered, acknowledged, and is in effect. For a Sponsor or an effective administrator. Both lists are whole unless a page is asked for.",
  getAccessGrantReview:
    "Its `evidence_digest` is what `If-Match` of a decision names: after a 412, this is what has changed.",
  getAccessGrantEvidence:
    "For an audit: `whole` says whether the chain holds. For a Sponsor or an effective administrator.",
  getEvidencePack:
    "Lines of JSON; ask for `next` with the same conditions until it is null. For a Sponsor, an effective administrator or an auditor.",
  proposeAccessGrantReview:
    "The Access has to be active at exactly that version, and has one review at a time. The proposal counts for 7 days.",
  approveAccessGrantReview:
    "By an administrator who is independent of the Sponsor. `If-Match` lets it happen only to the evidence that was seen. Counts for 365 days, and makes no Access. `dry_run` changes nothing: 204, or what refuses it.",
  revokeAccessGrantReview: "By an effective administrator, or the proposing Sponsor while it is proposed.",
  proposeLifecycleServiceGrant: "One to four capabilities, in the project's environment, for at most 365 days.",
  listLifecycleServiceGrants: 'A plain array, ascending by id; `Link` with `rel="next"` where the page is full.',
  approveLifecycleServiceGrant:
    "Another version than `expected_version` is 409 `version_conflict`. `dry_run` changes nothing: 204, or what refuses it.",
  revokeLifecycleServiceGrant: "Takes effect with its commit. A revocation is never refused for being late.",
  operations:
    "`failed` where anything failed or is ambiguous, else `pending` where anything waits, else `effective`, of what the caller can see.",
  operationsDiagnostics:
    "What failed, which workers run, which products drifted or are behind: the 500 furthest, or a page. `after_lag`: `lag_events project_id consumer_id` of the last one.",
  projectDiagnostics: "For an operator with a membership in its institution, or an active owner. Pages likewise.",
  listJobs: "Without payloads and secrets.",
  reconcileJob: "Changes nothing at the provider; the job ends where the provider knows the outcome.",
  retryJob: "On an operator's word that the write may happen again.",
  repairJob: "Where the write made a client whose name was lost with its answer.",
  doctor:
    "What is wrong comes first, each with its remedy. Changes nothing but streams that are missing on the broker.",
  listAudit:
    "All conditions have to hold. A page may be short, or empty, before the last: `next_after_id` is null on the last alone.",
  proveDecision:
    "`record` and `salt` make the entry, and the proof verifies without this program: docs/transparency.md.",
  proveOwnDecision:
    "Its receipt names the record as `audit_id`, `listOwnAudit` as `id`. Verified as `proveDecision` says.",
  listDecisionsAboutYou:
    "On your Access, on what you asked for, on you. Who decided is not told; those who did have the record and the salt of " +
    "the `entry`, and may show you both.",
  listOwnAudit: "Without `details`, which may name others.",
  listDeadLetters: "All conditions have to hold.",
  countDeadLetters: "With the values that the POST would have.",
  replayDeadLetters: "The audit keeps the reason beside the operator. A webhook that was deleted gets nothing.",
  replayDeadLetter: "The audit keeps the reason beside the operator.",
  streamOperations:
    "Server-Sent Events, each with the whole state of its subject; a connection begins with all. Ten streams a person.",
  queues: "`capped` where a queue holds more than is counted; `per_minute` is what the last full minute did.",
  tailBus:
    "Server-Sent Events, from the stream's opening on, 50 messages of each of the broker's streams a second. Three streams a person.",
  busStreams:
    "`items` is null where the broker does not answer; a consumer is `behind_since` its oldest message was stored.",
  listBacklogs: "To see which endpoint holds deliveries up.",
  listAccountNames: "At most 100 ids, also of disabled accounts.",
  listProjectNames: "At most 100 ids, also of withdrawn projects.",
  listSigningKeys: "With the pins for a new product, and the transition under way.",
  announceSigningKey:
    "By default no project switches for a day, so that products learn the key; it is 409 while another transition is under way.",
  publishSigningKey: "Also where projects lack the announcement. It happens by itself once all have it.",
  activateSigningKey: "`force` waits for no consumer.",
  retireSigningKey: "Its private key goes. It happens by itself; 409 before seven days.",
  compromiseSigningKey: "Needs a sign-in of the last five minutes.",
  pauseWebhook:
    "The account is told that an operator did so, and not why. Its own pause, if there is one, stays beneath.",
  resumeWebhook:
    "One that its account paused is 409 `invalid_state`. Where the account's own pause lay beneath, it stays paused.",
  kickWebhook:
    "Those that are due first. Each counts as the attempt that it would have been. 409 while the webhook is paused.",
  installation: "With what would end a hold, and which messages are missing.",
  openInstallation: "Where it is open already nothing changes. Read first which revocations may be lost.",
  listIntakeRejects: "With the reason and the first 2,048 bytes.",
  retryIntakeReject: "Any other rejected message has to be published again.",
  discardIntakeReject: "It is in no list any more, and goes after 30 days.",
  listOutgoingMails: "With what the mail server said last.",
  retryOutgoingMail:
    "One whose outcome is unknown may arrive twice, under one Message-ID. 409 while an attempt is under way.",
  forgetOutgoingMail: "409 while an attempt is under way.",
  listPersonHolds: "One of each provider that holds a person: its word, and the time of which that tells.",
  releasePerson:
    "By a sign-in of the last 300 s. What the directory says counts from then on; sessions that were ended stay so.",
  listRollouts: "Nothing new is activated in them until their release.",
  decideRollout: "By a sign-in of the last 300 s. `changed` is false where it stood so already.",

  createOrganizationRequest: "Once approved the institution exists, and its author is its first Sponsor.",
  createAccessRequest:
    "The last signature makes the Access with its grant event. Approved is not yet Access at the product.",
  createTemporaryAccessRequest:
    "The Access is revoked at `ends_at`. Without Access it is a request for one; with Access that has an end, for a later end.",
  listOwnRequests: "Each with its state and what it waits for.",
  withdrawRequest:
    "Of two at once, a withdrawal and a last signature, one happens. A request that is decided is 409 `invalid_state`.",
  createPerson:
    "Issuer and subject are unique: 409 `person_exists`. A person of an issuer that is not configured cannot sign in.",
  listPersonNames: "At most 100 ids. A merged person has the name of the person that remains.",
  createLinkProof:
    "The token's sign-in is at most 300 seconds old, and it counts once. The proof is used once, within ten minutes, by its maker.",
  createLinkRequest: "Two identities that took part in one decision are 409 `four_eyes_collapsed`.",
  objectToLinkRequest: "Until the link is made: 24 hours after the other side was mailed, at the earliest.",

  listInstitutions: "With your own roles.",
  getInstitution: "With your own roles; any other institution is 404.",
  listMembers: "One item a person, with every role, ended ones included, and whether it counts now.",
  listEnrollments: "Recipients are masked.",
  renewEnrollment:
    "Of one that has expired, was revoked, or whose mail failed, which is revoked then. Of any other: 409 `invalid_state`.",
  createEnrollment: "A recipient that is no address is taken, and stays `held` with the delivery `failed`.",
  listAccess: "With the version and the event that a proposal of a review names.",
  explainAccess:
    "The request with its signatures and the signers' independence, versions with what products had and acknowledged, reviews, and all that keeps it from being effective.",
  shortenAccess:
    "What is given ends earlier without a review, and never later: 409 `invalid_state`. Its version, and the review of it, stay.",
  listOverdueReviews:
    "Active Access whose version was last granted, approved in a review or confirmed more than 365 days ago, ascending by id after `after_id`.",
  proposeAccessRevocation:
    "For an active owner of its project, a Sponsor or an effective administrator, about another person's Access. An administrator decides who is neither the author nor that person; the Access is then revoked within a second.",
  listCampaigns: "Open and closed ones, after `after_id`. A campaign changes no Access.",
  openCampaign:
    "Over every active Access of the institution, or those of `access_ids`, of `project_ids` and with an `overdue` review: each member narrows. At most 5,000. Active owners of their projects answer until `deadline`.",
  getCampaign: "`withdrawn`: the Access changed before an answer; `unanswered`: the campaign ended first.",
  rescheduleCampaign: "To an earlier or a later time, until the campaign has ended. Answers stay as they were given.",
  closeCampaign:
    "Of an answer and a close at once one happens first. What is not answered stays unanswered; nothing is revoked.",
  listCampaignItems: "After `after_id`; with `state` those in it now.",
  delegateCampaignItem:
    "An effective member of the institution, other than the Access's person, may then answer beside the owners. `person_id` null takes it back.",
  answerCampaignItem:
    "Once, never about one's own Access. `confirm` is a confirmation; `propose_revocation` a request that another person, an administrator, decides. Neither changes the Access.",
  listOwnCampaignItems: "As an active owner of the project, or as the item's delegate.",
  confirmAccess:
    "For an active owner of its project, a Sponsor or an effective administrator, about another person's Access. It is no review and changes no Access; the next review is due 365 days later.",
  acceptEnrollment:
    "The person whose verified email is the recipient's becomes a member; anyone else waits for an administrator.",
  revokeEnrollment: "The mailed token is worthless from then on.",
  requestAuthenticatorReset:
    "For a Sponsor or an administrator, about another member. An administrator other than the author and the member decides, and an operator as well where the member belongs to another institution or is an operator. The member is told by mail.",
  changeMembership: "With the last signature the membership has that role and state.",
  registerWebsite:
    "One website an institution and environment. It is registered at once; its review lets the provider's job make its client.",
  listRequestableProjects:
    "Id and name alone; without those that the caller has Access to, or waits for. Anyone else's institution is 404.",
  listProjects: "Each with its state, its version, and why it is held where it is.",
  getProject: "Owners, launches and registration are null for a caller who only has Access to the project.",
  withdrawWebsite:
    "By an effective administrator or an active owner. Access stays as evidence. The state is judged before the version.",
  proposeLaunch:
    "The URL's host lies under a verified domain of the institution. An approved launch that is not complete is `held`, with the reason.",
  listLaunchProposals: "Of which the project itself shows the newest 20.",
  listProjectOwners: "A former owner is one whose `active` is false.",
  changeProjectOwner: "Answers with all owners. The last active owner stays: 409 `last_owner`.",
  listProjectEvents: "What the project's products receive, signed or not yet.",
  listPolicyReviews:
    "A review names the roles that sign, and who has signed. `decided_by_me` is what the caller approved or declined; `signed_by_me`, what of it is open.",
  getPolicyReview:
    "404 for anybody else, its author among them. `signers` has who holds a missing role, and why one may not sign.",
  approvePolicyReview:
    "Different people sign, never the author. A role that is not required, or has signed, is 409. `dry_run` changes nothing: 204, or what refuses it.",
  declinePolicyReview: "Ends the review, and its request with it.",

  consoleSession: "The console's own first request; other clients use `GET /v1/me` or `GET /v1/account`.",
  createEmbedLink: "The link opens one session of an hour for webhooks, deliveries and event types.",
  openEmbedSession: "A token counts once.",

  lifecycleEvents:
    "`wait` holds the answer until there is an event or the time is over. 410 `cursor_expired`: take a snapshot.",
  lifecycleSnapshot:
    "Where a product begins, and begins again after `cursor_expired`. A large state comes in parts that are named by their digests.",
  lifecycleSnapshotPart: "Check its digest: the signed list of parts names it.",
  acknowledgeLifecycle: "A position is acknowledged once the product's own transaction has committed it.",
  lifecycleKeys: "Needs no credential, and may be cached.",
  createStream: "Shared Signals Framework (SSF) 1.0, 8.1.1.1.",
  readStreams: "SSF 1.0, 8.1.1.2.",
  updateStream: "SSF 1.0, 8.1.1.3. Properties that the transmitter supplies may be sent only as they are.",
  replaceStream: "SSF 1.0, 8.1.1.4. The transmitter's own properties as for PATCH.",
  deleteStream: "SSF 1.0, 8.1.1.5.",
  readStreamStatus: "SSF 1.0, 8.1.2.1.",
  updateStreamStatus: "SSF 1.0, 8.1.2.2.",
  verifyStream: "SSF 1.0, 8.1.4. The event carries the `state` of the request.",
  addStreamSubject: "SSF 1.0, 8.1.3.2.",
  removeStreamSubject: "SSF 1.0, 8.1.3.3.",
  pollStream: "RFC 8936. Events that are not acknowledged come again.",
  ssfConfiguration: "Needs no credential.",

  initiateTransfer: "By an owner of the domain, five a minute. Not while broadcasts or emails of it are scheduled.",
  getDomainDkim: "Publish the record of the prepared key before the transfer completes.",
  listReceivedTransfers:
    "Those that came into effect, and those that were declined, taken back, reversed or have expired.",
  listAllTransfers: "With the address of each domain's owner of before; by cookie, as a forced move.",
  listIncomingTransfers: "Those addressed to your account's email.",
  listOutgoingTransfers: "Each with its status.",
  acceptEligibility: "With the reason where you could not.",
  getTransfer: "Of a transfer of others it is 404.",
  cancelTransfer: "Only while it is pending.",
  acceptTransfer: "For 24 hours a mailed link stops it; then the domain moves.",
  acceptTransferById: "As by the token.",
  declineTransfer: "Only while it is pending.",
  stopTransfer: "Needs no sign-in: the link was mailed to the owner.",
  forceTransfer: "Needs a fresh sign-in, and no acceptance.",
}
