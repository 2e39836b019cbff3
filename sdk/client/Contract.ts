/**
 * The types of every operation, body and problem, made of the OpenAPI document by `deno task client:contract`.
 * @module
 */
// deno-fmt-ignore-file

/** No member. */
export type None = Readonly<Record<never, never>>

export type AcceptEligibility = { readonly can_accept: boolean; readonly code: "domain_limit" | null; readonly message: string | null; readonly current_domains: number; readonly domain_limit: number }
export type AcceptedEnrollment = { readonly enrollment_id: string; readonly institution_id: string; readonly state: "invited" | "accepted"; readonly membership: { readonly role: MembershipRole; readonly state: MembershipState } | null; readonly version: number; readonly policy_review: OpenedPolicyReview | null }
export type AccessConfirmation = { readonly confirmation_id: string; readonly access_id: string; readonly access_version: number; readonly confirmed_by: string; readonly confirmed_at: Timestamp; readonly due_at: Timestamp_7 }
export type AccessEnd = { readonly access_id: string; readonly access_version: number; readonly ends_at: Timestamp }
export type AccessExplanation = { readonly access_id: string; readonly institution_id: string; readonly person_id: string; readonly as_of: Timestamp; readonly effective: { readonly state: "effective" | "not_effective" | "unknown"; /** All reasons why it is not effective */ readonly blocked_by: ReadonlyArray<"access_revoked" | "moved_to_another_institution" | "person_not_active" | "project_withdrawn">; /** Whether the product's event state differs from this Access */ readonly drift: boolean }; /** The request that granted it; null where the directory did */ readonly request: { readonly request_id: string; readonly person_id: string; readonly reason: string; readonly requested_at: Timestamp; /** Oldest first */ readonly approvals: ReadonlyArray<ExplainedApproval> } | null; /** When it is revoked by itself; null: it has no end, or is revoked */ readonly ends_at: Timestamp | null; /** The newest 100 times that its end was set, newest first */ readonly ends: ReadonlyArray<ExplainedEnd>; /** The newest 100 versions that belong to this institution, newest first */ readonly versions: ReadonlyArray<ExplainedVersion>; /** The newest 100 reviews, newest first */ readonly reviews: ReadonlyArray<ExplainedReview>; /** The newest 100 times that a person confirmed it in this institution, newest first */ readonly confirmations: ReadonlyArray<ExplainedConfirmation> }
export type AccessRequest = { readonly request_id: string; readonly institution_id: string; readonly project_id: string; readonly reason: string; readonly access_id: string | null; /** When the Access ends, as it was asked for */ readonly ends_at: Timestamp | null; readonly expires_at: Timestamp; readonly state: "submitted" | "approved" | "declined" | "expired"; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null; readonly policy_review: OpenedPolicyReview | null }
export type AccessRevocationRequest = AuthenticatorResetRequest & { readonly project_id: string; readonly access_id: string; readonly access_version: number }
export type AccessShortening = { /** Also as a string: `10`, `+10`, `1_000`, `10.0`. */ readonly expected_version: number; readonly ends_at: string; readonly reason: string }
export type AccessVersionDecision = { /** Also as a string: `10`, `+10`, `1_000`, `10.0`. */ readonly expected_version: number; readonly reason: string }
export type Account = { readonly id: string; readonly email: string; readonly name: string; readonly plan: Plan; readonly platform_admin: boolean; /** Active keys, and the plan's limit */ readonly api_keys: { readonly used: number; /** -1: unlimited */ readonly limit: number }; /** Webhooks, paused ones included */ readonly webhooks: { readonly used: number; /** -1: unlimited */ readonly limit: number }; /** Domains that it owns, without those on their way to it */ readonly domains: { readonly used: number; /** -1: unlimited */ readonly limit: number } }
export type AccountName = { readonly account_id: string; readonly name: string }
export type AccountNames = { readonly items: ReadonlyArray<AccountName> }
export type AmbiguousJob = Job & { readonly provider_reference: string; readonly target_state: { readonly [name: string]: unknown }; readonly allowed_actions: ReadonlyArray<"reconcile" | "reviewed_retry" | "reviewed_repair"> }
export type ApiKey = { readonly id: string; readonly name: string; readonly key_prefix: string; readonly permissions: ReadonlyArray<ApiKeyPermission>; readonly created_at: Timestamp; readonly is_active: boolean; readonly last_used_at: Timestamp | null }
export type ApiKeyPermission = "send"
export type Approval = { readonly reason: string; readonly role: string }
export type AuditPage = { readonly items: ReadonlyArray<AuditRecord>; readonly next_after_id: NextAfterId }
export type AuditRecord = OwnAuditRecord & { readonly actor: string | null; readonly details: { readonly [name: string]: unknown } }
export type Authenticator = { readonly authenticator_id: string; readonly kind: "passkey" | "security_key" | "totp" | "recovery_codes" | "password"; readonly credential_type: "fido2-platform" | "fido2-roaming" | "app" | "password" | "recovery-codes"; readonly label: string; readonly created_at: Timestamp; readonly last_used_at: Timestamp | null; readonly aaguid: string | null; readonly transports: ReadonlyArray<string>; readonly backup_eligible: boolean | null; readonly backup_state: boolean | null; readonly codes_remaining: number | null; readonly removable: boolean; readonly not_removable_reason: "last_authenticator" | "policy" | null }
export type AuthenticatorList = { readonly items: ReadonlyArray<Authenticator>; readonly total: number }
export type AuthenticatorResetCreate = { readonly reason: string; readonly person_id: string }
export type AuthenticatorResetRequest = { readonly request_id: string; readonly institution_id: string; readonly person_id: string; readonly reason: string; readonly expires_at: Timestamp; readonly state: "submitted" | "approved" | "declined" | "expired"; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null; readonly policy_review: OpenedPolicyReview | null }
export type BusReport = { readonly as_of: Timestamp; readonly items: ReadonlyArray<{ readonly stream: string; readonly messages: number; readonly bytes: number; readonly first_seq: number; readonly last_seq: number; readonly first_at: Timestamp | null; readonly last_at: Timestamp | null; readonly consumers: ReadonlyArray<{ readonly name: string; readonly pending: number; readonly ack_pending: number; readonly redelivered: number; readonly behind_since: Timestamp | null }> | null }> | null }
export type Campaign = { readonly campaign_id: string; readonly institution_id: string; readonly name: string; readonly reason: string; /** `closed` also where its deadline has come */ readonly state: "open" | "closed"; readonly opened_by: string; readonly opened_at: Timestamp; readonly deadline: Timestamp; /** Null where nobody closed it */ readonly closed: { readonly person_id: string; readonly at: Timestamp; readonly reason: string } | null }
export type CampaignAnswer = { readonly answer: "confirm" | "propose_revocation"; readonly reason: string }
export type CampaignCreate = { readonly name: string; readonly reason: string; /** In the future, at most 366 days ahead */ readonly deadline: string; readonly access_ids?: ReadonlyArray<string>; readonly project_ids?: ReadonlyArray<string>; /** Also `t`, `yes`, `y`, `on`, `1` and their opposites. */ readonly overdue?: boolean }
export type CampaignDelegation = { /** A member of the institution; null: nobody any more */ readonly person_id: string | null; readonly reason: string }
export type CampaignDetail = Campaign & { readonly items: { readonly total: number; readonly open: number; readonly confirmed: number; readonly proposed_for_revocation: number; readonly withdrawn: number; readonly unanswered: number } }
export type CampaignItem = { readonly item_id: string; readonly campaign_id: string; readonly access_id: string; readonly access_version: number; readonly project_id: string; /** Whose Access it is */ readonly person_id: string; readonly display_name: string | null; readonly role: string; readonly state: "open" | "confirmed" | "proposed_for_revocation" | "withdrawn" | "unanswered"; readonly delegate_person_id: string | null; readonly answer: { readonly person_id: string; readonly at: Timestamp; readonly reason: string } | null; readonly confirmation_id: string | null; /** The proposal that an administrator decides */ readonly revocation: { readonly request_id: string; readonly review_id: string | null; readonly state: "submitted" | "approved" | "declined" | "expired" } | null }
export type CampaignItems = { readonly items: ReadonlyArray<CampaignItem> }
export type CampaignReschedule = { /** In the future, at most 366 days after the opening */ readonly deadline: string; readonly reason: string }
export type Campaigns = { readonly items: ReadonlyArray<Campaign> }
export type CheckAssertion = { readonly proof: { readonly type: "webauthn.get"; readonly credential: { readonly id: string; readonly rawId: string; readonly type: "public-key"; readonly response: { readonly clientDataJSON: string; readonly authenticatorData: string; readonly signature: string; readonly userHandle?: string | null } } } | { readonly type: "totp"; readonly code: string } | { readonly type: "recovery_code"; readonly code: string } }
export type CheckedAssertion = { readonly assertion_id: string; readonly verified: boolean; readonly ended: boolean; readonly authenticator_id: string | null; readonly kind: "passkey" | "security_key" | "totp" | "recovery_codes" | "password" | null; readonly user_verified: boolean | null; readonly codes_remaining: number | null }
export type ConsoleSession = { readonly session: { readonly id: string; readonly issuer: string; readonly authenticated_at: Timestamp | null; readonly idle_ends_at: Timestamp; readonly ends_at: Timestamp } | null; readonly person: { readonly person_id: string; readonly display_name: string | null; readonly email: string | null; readonly aal: "aal1" | "aal2" | "aal3" | "unknown" } | null; readonly account: { readonly id: string; readonly email: string; readonly name: string; readonly plan: Plan; readonly platform_admin: boolean } | null; readonly operator: boolean; readonly auditor: boolean; readonly institutions: ReadonlyArray<{ readonly institution_id: string; readonly name: string | null; readonly roles: ReadonlyArray<"sponsor" | "administrator" | "member"> }>; readonly projects: ReadonlyArray<{ readonly project_id: string; readonly name: string | null }>; readonly issuers: ReadonlyArray<{ readonly issuer: string; readonly name: string; readonly sign_in_url: string }>; readonly mode: "read" | "on"; readonly brand: { readonly name: string; readonly logo_url: string | null }; readonly features: { readonly transfers: boolean; readonly passkey_domain: string }; readonly installation: { readonly state: "open" | "held" }; readonly version: string }
export type Contact = { readonly name: string; readonly email: string; readonly role?: "owner" | "technical" | "security" | "billing" | null; readonly phone?: string | null }
export type CreatedApiKey = { readonly id: string; readonly name: string; readonly key_prefix: string; readonly permissions: ReadonlyArray<ApiKeyPermission>; readonly created_at: Timestamp; /** Null where the answer repeats an earlier one of the same `Idempotency-Key`: it is shown once */ readonly key: string | null }
export type CreatedPerson = { readonly person_id: string; readonly issuer: string; readonly subject: string; readonly reason: string; readonly state: "active" | "suspended" | "disabled"; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null; readonly policy_review: OpenedPolicyReview | null }
export type CredentialActionKind = "passkey.register" | "passkey.remove" | "totp.enroll" | "totp.remove" | "recovery_codes.generate" | "authenticator.rename" | "session.revoke" | "sessions.revoke_others"
export type CredentialCapabilities = { readonly actions: ReadonlyArray<{ readonly kind: CredentialActionKind; readonly available: boolean; readonly unavailable_reason: string | null; readonly acr_values: ReadonlyArray<string>; readonly max_age_seconds: number; readonly satisfied: boolean; readonly target: "none" | "authenticator" | "session"; readonly proof_type: "webauthn.create" | "totp" | "confirm" }>; readonly intent_ttl_seconds: number; readonly second_factor: boolean }
export type CustomHeader = { /** Not `User-Agent`, `Content-*`, `Webhook-*`, `X-Webhook-*`, nor a header that controls the connection */ readonly name: string; readonly value: string }
export type CustomHeaders = ReadonlyArray<CustomHeader>
export type DeadLetterPage = { readonly items: ReadonlyArray<OperatorDeadLetter>; readonly next_after_id: NextAfterId }
export type DeadLetterReplay = { readonly webhook_id: string; readonly since: string; readonly until?: string | null; readonly event_type?: EventType | null; readonly reason: string }
export type DecisionAboutPerson = { readonly record_id: string; readonly at: Timestamp; readonly action: string; readonly subject: string; readonly entry: string; readonly index: number | null; readonly proof: string | null }
export type DecisionProof = { readonly record: AuditRecord | null; readonly salt: string; readonly entry: string; readonly index: number | null; readonly proof: string | null }
export type DecisionsAboutPerson = { readonly items: ReadonlyArray<DecisionAboutPerson>; readonly next_after_id: NextAfterId }
export type DeliveryHour = { readonly hour: Timestamp_3; readonly delivered: number; /** Attempts that failed and are followed by another one */ readonly failed: number; /** Attempts that failed and were the last one */ readonly dead_letter: number }
export type DeliveryHours = { /** Webhooks without an attempt are left out */ readonly items: ReadonlyArray<WebhookHours>; /** The newest delivery of each webhook, whenever it was made; webhooks that keep none are left out */ readonly newest: ReadonlyArray<NewestDelivery> }
export type DeliveryMinute = { readonly minute: Timestamp_2; readonly delivered: number; /** Attempts that failed and are followed by another one */ readonly failed: number; /** Attempts that failed and were the last one */ readonly dead_letter: number; /** How long an attempt took, on average */ readonly ms_average: number; readonly ms_max: number }
export type DeliveryStatistics = { /** Oldest first; minutes without an attempt are left out. A page spans a day at most */ readonly items: ReadonlyArray<DeliveryMinute>; /** Half of the page's attempts took at most so many milliseconds, to within a factor of two */ readonly ms_p50: number | null; /** The same of 99 of 100 attempts */ readonly ms_p99: number | null; /** The `since` of the next page; null on the last page */ readonly next_since: Timestamp | null }
export type DeliveryStatus = "pending" | "retrying" | "delivered" | "dead_letter" | "cancelled"
export type Diagnostics = { readonly as_of: Timestamp; readonly installation: { readonly epoch: number; readonly state: "open" | "held"; readonly held_since: Timestamp | null; readonly held_reason: string | null }; readonly failed: ReadonlyArray<Job>; readonly ambiguous: ReadonlyArray<AmbiguousJob>; readonly workers: ReadonlyArray<{ readonly worker: string; readonly instance: string; readonly last_seen_at: Timestamp; readonly state: "running" | "stale" | "stopped"; readonly backlog: number | null }>; readonly client_drift: ReadonlyArray<{ readonly project_id: string; readonly client_id: string; readonly field: string; readonly expected_digest: string; readonly observed_digest: string; readonly first_seen_at: Timestamp }>; readonly lifecycle_lag: ReadonlyArray<LifecycleLag>; readonly lifecycle_streams: ReadonlyArray<LifecycleStreamState>; readonly lifecycle_drift: ReadonlyArray<LifecycleDrift>; readonly lifecycle_broker_subscribers: ReadonlyArray<LifecycleBrokerSubscriber> | null }
export type Digest = string
export type Digest_1 = string
export type DkimKey = { readonly selector: string; readonly status: "active" | "prepared"; /** Null, as are the public key and the record's value, where the platform made the key */ readonly algorithm: "rsa" | "ed25519" | null; readonly public_key: string | null; /** Of the TXT record that publishes the key */ readonly record_name: string; readonly record_value: string | null; readonly transfer_id: string | null; readonly effective_at: Timestamp | null }
export type DoctorFinding = { readonly level: DoctorLevel; readonly subject: string; readonly says: string; readonly remedy: string | null; readonly since: Timestamp | null; readonly hours: ReadonlyArray<number> | null; readonly hours_capped: boolean }
export type DoctorLevel = "fail" | "warn" | "ok"
export type DoctorReport = { readonly as_of: Timestamp; readonly level: DoctorLevel; readonly items: ReadonlyArray<DoctorFinding> }
export type Domain = { readonly id: string; readonly name: string; /** The account that owns the domain */ readonly account_id: string; /** Its address, where a platform administrator looks for domains by name; else null */ readonly account_email: string | null; readonly workspace_id: string; /** The caller's role in its workspace; null for an owner outside it */ readonly workspace_role: "owner" | "admin" | "member" | null; /** Whether the caller may offer it, and take an offer back */ readonly may_transfer: boolean; readonly verified_at: Timestamp | null; /** Of the key that signs the domain's mail */ readonly dkim_selector: string; /** Its transfer that is pending or accepted */ readonly transfer: { readonly id: string; readonly status: "pending" | "accepted" } | null }
export type DomainDkim = { readonly domain_id: string; readonly domain_name: string; readonly keys: ReadonlyArray<DkimKey> }
export type DomainPage = { readonly items: ReadonlyArray<Domain>; /** The `after_id` of the next page; null on the last page */ readonly next_after_id: string | null }
export type DomainTransfer = { readonly id: string; readonly domain_id: string; readonly domain_name: string; readonly source_user_id: string; readonly source_org_id: string; readonly source_label: string; readonly target_email: string; readonly target_user_id: string | null; readonly target_org_id: string | null; readonly status: DomainTransferStatus; readonly note: string | null; readonly cooloff_until: Timestamp | null; readonly initiated_at: Timestamp; readonly accepted_at: Timestamp | null; readonly completed_at: Timestamp | null; readonly expires_at: Timestamp }
export type DomainTransferAcceptance = { readonly target_org_id?: string | null; /** Also `t`, `yes`, `y`, `on`, `1` and their opposites. */ readonly rotate_dkim?: boolean | null }
export type DomainTransferPage = { readonly items: ReadonlyArray<DomainTransfer>; /** The `after_id` of the next page; null where this page is the last */ readonly next_after_id: string | null }
export type DomainTransferStatus = "pending" | "accepted" | "completed" | "declined" | "cancelled" | "reversed" | "expired"
export type EmbedLink = { /** The address of the frame. Its fragment is a token that acts once; null where the request was repeated under its Idempotency-Key, since no receipt keeps it */ readonly url: string | null; readonly expires_at: Timestamp }
export type EmbedSession = { /** A bearer for webhooks, deliveries and event types */ readonly token: string; readonly session: ConsoleSession }
export type Enrollment = { readonly enrollment_id: string; readonly institution_id: string; readonly recipient: string; readonly reason: string; readonly delivery: MailDelivery; readonly expires_at: Timestamp; readonly state: "held" | "invited" | "accepted" | "expired" | "revoked"; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null; readonly policy_review: OpenedPolicyReview | null }
export type EnrollmentCreate = { readonly reason: string; readonly recipient: string }
export type Environment = "staging" | "production"
export type EventMetadata = { readonly subject: string | null; readonly tag: string | null }
export type EventType = "email.sent" | "email.delivered" | "email.opened" | "email.clicked" | "email.bounced" | "email.failed" | "email.complained" | "email.unsubscribed"
export type EventTypeDetails = { readonly event_type: EventType; readonly meaning: string; /** Members of `metadata` that are usual for the type, beside `subject` and `tag` */ readonly metadata_fields: ReadonlyArray<string>; /** JSON Schema (2020-12) of the body; members that it does not name may come as well */ readonly json_schema: { readonly [name: string]: unknown }; readonly example: WebhookBody; /** Your webhooks that take the type, paused ones included */ readonly webhook_ids: ReadonlyArray<string> }
export type EventTypes = { readonly items: ReadonlyArray<EventTypeDetails> }
export type ExplainedApproval = { readonly role: string; readonly person_id: string; /** An operator in an administrator's place */ readonly stands_in: boolean; readonly reason: string; readonly approved_at: Timestamp; /** Those whom this person had to be independent of, by the four-eyes rule, at the time of the decision */ readonly independent_of: ReadonlyArray<string> }
export type ExplainedConfirmation = { readonly access_version: number; readonly person_id: string; readonly confirmed_at: Timestamp; readonly reason: string; /** The campaign that asked; null where none did */ readonly campaign_id: string | null }
export type ExplainedEnd = { /** Null: no end any more */ readonly ends_at: Timestamp | null; readonly set_at: Timestamp; /** Who asked for it, or brought it forward */ readonly made_by: string; readonly approved_by: ReadonlyArray<string>; readonly reason: string; /** The reviewed request; null where the end was brought forward */ readonly request_id: string | null; /** The only version that it ends, by a signed revocation; null: it ends any */ readonly access_version: number | null }
export type ExplainedReview = { readonly review_id: string; readonly access_version: number; readonly state: "proposed" | "approved" | "revoked"; readonly proposed_by: string; readonly proposed_at: Timestamp; readonly sponsor_reason: string; readonly approved_by: string | null; readonly approved_at: Timestamp | null; /** Those whom this person had to be independent of, by the four-eyes rule, at the time of the decision */ readonly independent_of: ReadonlyArray<string>; readonly revoked_by: string | null; readonly revoked_at: Timestamp | null; readonly expires_at: Timestamp_5 }
export type ExplainedVersion = { readonly access_version: number; readonly project_id: string; readonly role: string; readonly state: "active" | "revoked"; readonly created_at: Timestamp; /** Null: the directory */ readonly made_by: string | null; readonly approved_by: ReadonlyArray<string>; /** Whether this version revokes the Access because its end had come */ readonly at_its_end: boolean; readonly event: { readonly event_id: string; readonly digest: string }; readonly delivery: LifecycleDelivery; readonly acknowledgement: LifecycleAcknowledgement }
export type FinishAction = { readonly proof: { readonly type: "webauthn.create"; readonly credential: { readonly id: string; readonly rawId: string; readonly type: "public-key"; readonly response: { readonly clientDataJSON: string; readonly attestationObject: string; readonly transports?: ReadonlyArray<string> }; readonly authenticatorAttachment?: string | null; readonly clientExtensionResults?: { readonly [name: string]: unknown } } } | { readonly type: "totp"; readonly code: string } | { readonly type: "confirm"; readonly acknowledged: true } }
export type FinishedAction = { readonly intent_id: string; readonly kind: CredentialActionKind; readonly state: "completed"; readonly completed_at: Timestamp; readonly authenticator: Authenticator | null; readonly recovery_codes: ReadonlyArray<string> | null; readonly sessions_revoked: number; readonly event_ids: ReadonlyArray<string> }
export type ForcedDomainTransfer = { readonly target_email: string; /** Also `t`, `yes`, `y`, `on`, `1` and their opposites. */ readonly rotate_dkim?: boolean | null }
export type Freshness = { readonly authenticated_at: Timestamp | null; readonly age_seconds: number | null; readonly acr: string | null; readonly amr: ReadonlyArray<string>; readonly aal: "aal1" | "aal2" | "aal3" | "unknown"; readonly server_time: Timestamp; readonly token_expires_at: Timestamp; readonly fresh: boolean; readonly fresh_until: Timestamp | null; readonly requirements: ReadonlyArray<{ readonly operation: string; readonly acr_values: ReadonlyArray<string>; readonly max_age_seconds: number; readonly satisfied: boolean }> }
export type GrantCandidate = { readonly access_id: string; readonly access_version: number; readonly person_id: string; readonly project_id: string; readonly role: string; readonly granted_at: Timestamp; readonly grant_event_id: string; readonly proposable: boolean; readonly blocked_by: ReadonlyArray<string> }
export type GrantEvidence = { readonly review_id: string; readonly institution_id: string; readonly project_id: string; readonly person_id: string; readonly state: "proposed" | "approved" | "revoked"; readonly access: ReviewedAccess; readonly sponsor_decision: SponsorDecision; readonly sponsor_reason: string; readonly grant_event: { readonly event_id: string; readonly position: number; readonly digest: Digest }; readonly evidence_digest: Digest; /** Whether each digest is that of its entry and the last one is `evidence_digest` */ readonly whole: boolean; /** Oldest first */ readonly entries: ReadonlyArray<GrantEvidenceEntry> }
export type GrantEvidenceEntry = { readonly nth: number; readonly receipt_id: string; readonly action: "propose" | "approve" | "revoke"; readonly person_id: string; readonly at: Timestamp; readonly reason: string; readonly digest: Digest; readonly prev_digest: Digest_1 }
export type GrantProposal = { readonly access_id: string; /** Also as a string: `10`, `+10`, `1_000`, `10.0`. */ readonly access_version: number; readonly grant_event_id?: string | null; readonly reason: string }
export type GrantRead = { readonly id: string; readonly project_id: string; readonly service_id: string; readonly service_issuer: string; readonly capabilities: ReadonlyArray<"events.read" | "snapshot.read" | "cursor.acknowledge" | "stream.manage">; readonly environment: "staging" | "production"; readonly state: "proposed" | "approved" | "revoked" | "expired"; readonly version: number; readonly reason: string; readonly proposed_by: string; readonly proposed_at: Timestamp; readonly approved_by: string | null; readonly approved_at: Timestamp | null; readonly revoked_by: string | null; readonly revoked_at: Timestamp | null; readonly expires_at: Timestamp | null; readonly delivery: LifecycleDelivery; readonly acknowledgement: LifecycleAcknowledgement; readonly effective: "effective" | "not_effective" | "unknown" }
export type GrantReceipt = { readonly receipt_id: string; readonly review_id: string; readonly institution_id: string; readonly action: "propose" | "approve" | "revoke"; readonly state: "proposed" | "approved" | "revoked"; readonly access: ReviewedAccess; readonly sponsor_decision: SponsorDecision; readonly grant_event: { readonly event_id: string; readonly position: number; readonly digest: Digest }; readonly approval: { readonly person_id: string; readonly approved_at: Timestamp; readonly digest: Digest } | null; readonly revocation: { readonly person_id: string; readonly revoked_at: Timestamp; readonly digest: Digest } | null; readonly actor_person_id: string; readonly recorded_at: Timestamp; readonly issuer_assignment: null; readonly access_effect: "unchanged"; readonly evidence_digest: Digest; readonly audit_id: string }
export type GrantReview = { readonly review_id: string; readonly institution_id: string; readonly project_id: string; readonly person_id: string; readonly access: ReviewedAccess; readonly sponsor_decision: SponsorDecision; readonly grant_event: { readonly event_id: string; readonly position: number; readonly digest: Digest }; readonly evidence_digest: Digest; readonly state: "proposed" | "approved" | "revoked"; readonly proposed_at: Timestamp; readonly sponsor_reason: string; readonly decision: { readonly state: "proposed" | "approved" | "revoked"; readonly at: Timestamp }; readonly delivery: LifecycleDelivery; readonly acknowledgement: LifecycleAcknowledgement; readonly effective_access: { readonly state: "effective" | "not_effective" | "unknown"; readonly observed_at: Timestamp | null; readonly drift: boolean }; readonly validity: { readonly current: boolean; readonly reasons: ReadonlyArray<"access_version_superseded" | "access_not_active" | "sponsor_not_current" | "membership_ended" | "review_expired" | "review_revoked"> } }
export type GrantReviewList = { readonly institution_id: string; readonly as_of: Timestamp; readonly reviews: ReadonlyArray<GrantReview>; readonly candidates: ReadonlyArray<GrantCandidate> }
export type HTTPValidationError = { readonly detail?: ReadonlyArray<ValidationError> }
export type Health = { readonly status: "live"; readonly version: string; readonly started_at: Timestamp }
export type HeldRollout = { readonly project_id: string; readonly name: string; readonly website: string; readonly environment: Environment; readonly institution_id: string; readonly institution_name: string | null; readonly rollout: "hold" | "fail"; readonly state: ProjectState; readonly version: number }
export type HeldRollouts = { readonly items: ReadonlyArray<HeldRollout>; readonly next_after_id: NextAfterId }
export type HoldCursor = string
export type InstallationState = { readonly epoch: number; readonly state: "open" | "held"; readonly held_since: Timestamp | null; readonly held_reason: string | null; readonly says: string | null; readonly remedy: string | null; readonly lost_since: Timestamp | null; readonly missing: ReadonlyArray<{ readonly stream: string; readonly project_id: string | null; readonly epoch: number | null; readonly first: number; readonly last: number }>; readonly opened_at: Timestamp | null }
export type Institution = { readonly institution_id: string; readonly name: string; readonly status: "active" | "suspended"; readonly verified_domains: ReadonlyArray<string>; readonly created_at: Timestamp; /** The caller's own memberships that have not ended; none for an operator without one */ readonly memberships: ReadonlyArray<{ readonly role: MembershipRole; /** Whether the role counts now: accepted, active, begun and not over, in an active institution */ readonly effective: boolean }> }
export type InstitutionAccess = { readonly items: ReadonlyArray<ListedAccess> }
export type InstitutionEnrollments = { readonly items: ReadonlyArray<ListedEnrollment> }
export type InstitutionMember = { readonly person_id: string; readonly display_name: string | null; /** One a role, ended ones included */ readonly memberships: ReadonlyArray<{ readonly role: MembershipRole; /** Whether the role counts now: accepted, active, begun and not over, in an active institution */ readonly effective: boolean; readonly state: MembershipState; readonly accepted_at: Timestamp | null; readonly effective_from: Timestamp | null; readonly expires_at: Timestamp | null }> }
export type InstitutionMembers = { readonly items: ReadonlyArray<InstitutionMember> }
export type Institutions = { readonly items: ReadonlyArray<Institution> }
export type IntakeReject = { readonly id: string; readonly state: "rejected" | "waiting" | "resolved"; readonly stream: string; readonly stream_seq: number; readonly subject: string; readonly reason: string; readonly detail: string | null; readonly raw: string; readonly bytes: number; readonly account_id: string | null; readonly received_at: Timestamp; readonly waits_until: Timestamp | null; readonly retryable: boolean }
export type IntakeRejectPage = { readonly items: ReadonlyArray<IntakeReject>; readonly next_after_id: NextAfterId }
export type Job = { readonly job_id: string; readonly kind: string; readonly project_id: string | null; readonly state: "pending" | "running" | "effective" | "failed" | "ambiguous"; readonly attempts: number; readonly max_attempts: number; readonly next_attempt_at: Timestamp | null; readonly last_error_code: string | null; readonly created_at: Timestamp; readonly updated_at: Timestamp }
export type JobRepair = { readonly client_id: string; readonly registration_client_uri?: string | null; readonly registration_access_token?: string | null; readonly reason: string }
export type Jobs = { readonly items: ReadonlyArray<Job> }
export type JwkSet = { readonly keys: ReadonlyArray<{ readonly [name: string]: unknown }> }
export type KeyActivation = { readonly reason: string; /** Also `t`, `yes`, `y`, `on`, `1` and their opposites. */ readonly force?: boolean }
export type KeyAnnouncement = { readonly reason: string; readonly not_before?: string | null }
export type KeyTransition = { readonly successor: string; readonly not_before: Timestamp; readonly deadline_at: Timestamp; readonly untold: number; readonly switched: number; readonly left: number; readonly waiting: ReadonlyArray<{ readonly project_id: string; readonly consumers: ReadonlyArray<string> }> }
export type KickedDeliveries = { readonly deliveries: number }
export type LagCursor = string
export type LastAccessReview = { readonly kind: "grant" | "review" | "confirmation"; readonly at: Timestamp; /** Who approved or confirmed it; null for a grant */ readonly person_id: string | null }
export type LaunchCreate = { readonly reason: string; readonly launch_url: string }
export type LaunchProposal = { readonly launch_id: string; readonly project_id: string; readonly launch_url: string; readonly reason: string; readonly project_version: number; readonly held_reason: string | null; readonly state: "proposed" | "approved" | "launched" | "held" | "declined" | "superseded"; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null; readonly policy_review: OpenedPolicyReview | null }
export type LettersReplayed = { readonly deliveries: number }
export type LifecycleAcknowledged = { readonly acknowledged_cursor: string; readonly head: number; readonly lag: number }
export type LifecycleAcknowledgement = { readonly state: "none" | "pending" | "acknowledged" | "rejected"; readonly installed_version: string | null; readonly cursor: string | null; readonly acknowledged_at: Timestamp | null }
export type LifecycleBrokerSubscriber = { readonly name: string; readonly trust: "inside"; readonly pending: number }
export type LifecycleCursorAcknowledgement = { readonly cursor: string; readonly installed_version: string; readonly chain_head: string }
export type LifecycleDelivery = { readonly state: "none" | "queued" | "delivered" | "failed" | "ambiguous"; readonly event_id: string | null; readonly queued_at: Timestamp | null; readonly last_attempt_at: Timestamp | null; readonly attempts: number }
export type LifecycleDrift = { readonly project_id: string; readonly key: string; readonly expected: string | null; readonly observed: string | null; readonly first_seen_at: Timestamp }
export type LifecycleEvents = { readonly items: ReadonlyArray<{ readonly position: number; readonly jti: string; readonly set: string }>; readonly cursor: string; readonly head: number; readonly more: boolean }
export type LifecycleLag = { readonly project_id: string; readonly consumer_id: string; readonly head_position: number; readonly delivered_position: number; readonly acknowledged_position: number; readonly installed_version: string | null; readonly oldest_unacknowledged_seconds: number | null; readonly decision_to_queue_ms_p99: number | null; readonly queue_to_delivery_ms_p99: number | null; readonly delivery_to_ack_ms_p99: number | null; readonly lag_events: number; readonly acknowledged_at: Timestamp | null; readonly snapshot_required: boolean }
export type LifecycleServiceApproval = { /** Also as a string: `10`, `+10`, `1_000`, `10.0`. */ readonly expected_version: number; readonly reason: string }
export type LifecycleServiceProposal = { readonly service_id: string; readonly service_issuer?: string | null; readonly capabilities: ReadonlyArray<"events.read" | "snapshot.read" | "cursor.acknowledge" | "stream.manage">; readonly environment: "staging" | "production"; readonly expires_at?: string | null; readonly reason: string }
export type LifecycleStreamState = { readonly stream_id: string; readonly project_id: string; readonly consumer_id: string; readonly delivery: "push" | "poll"; readonly status: "enabled" | "paused" | "disabled"; readonly status_by: "receiver" | "transmitter"; readonly lag_events: number; readonly attempts: number; readonly failing_since: Timestamp | null }
export type LinkCreate = { readonly reason: string; readonly proof_id: string }
export type LinkProof = { readonly proof_id: string; readonly expires_at: Timestamp }
export type LinkProofCreate = { readonly token: string }
export type LinkRequest = { readonly link_request_id: string; readonly proof_id: string | null; readonly issuer: string; readonly subject: string; readonly reason: string; readonly expires_at: Timestamp; readonly effective_at: Timestamp | null; readonly state: "pending_review" | "linked" | "declined" | "expired"; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null; readonly policy_review: OpenedPolicyReview | null }
export type ListedAccess = { readonly access_id: string; /** The current version, the `access_version` of a proposal; with `at` the version of that time */ readonly access_version: number; readonly project_id: string; readonly person_id: string; readonly display_name: string | null; readonly role: string; readonly state: "active" | "revoked"; readonly granted_at: Timestamp_4; /** When it is revoked by itself; with `at` as it was set then; null: it has no end, or is revoked */ readonly ends_at: Timestamp | null; /** The event of the current version */ readonly grant_event_id: string; /** The review of the current version that is proposed or approved and has not expired */ readonly review: { readonly review_id: string; readonly state: "proposed" | "approved" } | null }
export type ListedEnrollment = Enrollment & { readonly author_person_id: string; readonly decided_at: Timestamp | null }
export type ListedOwners = { readonly items: ReadonlyArray<ProjectOwner> }
export type ListedPolicyReview = PolicyReview & { readonly kind: string; readonly request_id: string; readonly institution_id: string | null; readonly project_id: string | null; readonly author_person_id: string; readonly reason: string; readonly asked: { readonly [name: string]: unknown }; readonly created_at: Timestamp; readonly declined: { readonly role: string; readonly person_id: string; readonly reason: string; readonly declined_at: Timestamp } | null }
export type ListedProject = { readonly project_id: string; readonly institution_id: string; /** The client at the identity provider; null until the provider's job has made it. */ readonly client_id: string | null; readonly name: string; readonly website: string; readonly connector_kind: "service_connector" | "standard_oidc"; readonly connector_product: string | null; readonly preview_digest: string | null; readonly environment: Environment; readonly redirect_uris: ReadonlyArray<string>; readonly post_logout_redirect_uris: ReadonlyArray<string>; readonly backchannel_logout_uri: string | null; readonly requested_scopes: ReadonlyArray<string>; readonly state: ProjectState; /** Why the project is held: what its approved launch waits for, or the operator's reason for holding a rollout. */ readonly held_reason: string | null; /** A rollout that an operator holds, or that failed: nothing new is activated until its release. */ readonly rollout: "hold" | "fail" | null; /** The URL of the last launch. */ readonly launch_url: string | null; /** The connector version that the product runs. */ readonly installed_version: string | null; /** Rises with each decision: the `expected_version` of a withdrawal. */ readonly version: number; readonly created_at: Timestamp; readonly updated_at: Timestamp }
export type ListedProjects = { readonly items: ReadonlyArray<ListedProject> }
export type MailDelivery = { readonly state: "none" | "queued" | "delivered" | "failed" | "ambiguous"; readonly message_id: string | null }
export type MembershipChange = { readonly reason: string; readonly person_id: string; readonly role: MembershipRole; readonly state: MembershipState }
export type MembershipRequest = { readonly request_id: string; readonly institution_id: string; readonly membership: { readonly person_id: string; readonly role: MembershipRole; readonly state: MembershipState }; readonly reason: string; readonly expires_at: Timestamp; readonly state: "submitted" | "approved" | "declined" | "expired"; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null; readonly policy_review: OpenedPolicyReview | null }
export type MembershipRole = "sponsor" | "administrator" | "member"
export type MembershipState = "invited" | "active" | "suspended" | "ended"
export type NewApiKey = { /** 1 to 200 characters, no control characters */ readonly name: string; readonly permissions?: ReadonlyArray<ApiKeyPermission> }
export type NewDomainTransfer = { readonly target_email: string; readonly note?: string | null }
export type NewEmbedLink = { /** Also as a string: `10`, `+10`, `1_000`, `10.0`. */ readonly expires_in?: number }
export type NewEmbedSession = { readonly token: string }
export type NewWebhook = { /** https, at most 2048 characters, no user information, no private or reserved address */ readonly url: string; readonly events: ReadonlyArray<EventType>; /** What the webhook is for; an empty text removes it */ readonly description?: string | null; readonly headers?: CustomHeaders | null; readonly basic_auth?: WebhookBasicAuth | null; /** Lets `Retry-After` of a failed answer make the next attempt later, by a day at most; by default false */ readonly honor_retry_after?: boolean | null; /** How many deliveries may begin in a second; 0, the default, for any number */ readonly rate_limit?: number | null; /** By default true */ readonly is_active?: boolean | null; /** The secret of an endpoint that was served elsewhere; by default a new one */ readonly secret?: string | null }
export type NewestDelivery = { readonly webhook_id: string; readonly delivery_id: string; readonly status: DeliveryStatus; readonly created_at: Timestamp }
export type NextAfterId = string | null
export type NotReady = { readonly status: "not_ready"; readonly checks: ReadinessChecks; readonly note?: string }
export type NoticeSettings = { readonly delivery: "digest" | "immediately" | "off" }
export type NoticeSettingsChange = { readonly delivery: "digest" | "immediately" | "off" }
export type Notification = { readonly id: string; readonly category: "alerts" | "sends" | "team" | "domains"; readonly severity: "info" | "success" | "warning" | "critical"; readonly title: string; readonly body: string; /** A path of the app */ readonly href: string; /** Repeats within an hour are one notification; `created_at` is the last one's */ readonly count: number; readonly read_at: Timestamp | null; readonly created_at: Timestamp }
export type NotificationChannels = { readonly web: boolean; readonly email: boolean; readonly slack: boolean }
export type NotificationList = { readonly items: ReadonlyArray<Notification>; readonly total: number; readonly unread: number; /** The `after_id` of the next page; null on the last page */ readonly next_after_id?: string | null }
export type NotificationPreferences = { readonly alerts: NotificationChannels; readonly sends: NotificationChannels; readonly team: NotificationChannels; readonly domains: NotificationChannels }
export type Objection = { readonly reason?: string | null }
export type OpenedPolicyReview = { readonly review_id: string; readonly required_roles: ReadonlyArray<string> }
export type OperatedWebhook = { readonly webhook_id: string; readonly account_id: string; readonly url: string; readonly is_active: boolean; readonly paused_at: Timestamp | null; readonly paused_by: PausedBy | null }
export type OperationsSummary = { readonly pending: number; readonly failed: number; readonly failure_diagnostics_available: boolean; readonly status: "failed" | "pending" | "effective" }
export type OperatorDeadLetter = { readonly delivery_id: string; readonly account_id: string; readonly webhook_id: string; readonly event_type: string; readonly response_status: number | null; readonly error: string | null; readonly endpoint_url: string | null; readonly created_at: Timestamp; readonly died_at: Timestamp; readonly webhook_deleted: boolean }
export type OrganizationRequest = { readonly request_id: string; readonly name: string; readonly organization_type: string; readonly website: string; readonly domains: ReadonlyArray<string>; readonly purpose: string; readonly contacts: ReadonlyArray<Contact>; readonly reason: string; readonly institution_id: string | null; readonly state: "submitted" | "approved" | "declined"; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null; readonly policy_review: OpenedPolicyReview | null }
export type OutgoingMail = { readonly id: string; readonly kind: string; readonly state: "pending" | "failed" | "unknown" | "sent" | "dropped"; readonly recipient: string; readonly attempts: number; readonly sending: boolean; readonly created_at: Timestamp; readonly next_attempt_at: Timestamp | null; readonly last_error: string | null }
export type OutgoingMailPage = { readonly items: ReadonlyArray<OutgoingMail>; readonly next_after_id: NextAfterId }
export type OverdueReview = { readonly access_id: string; readonly access_version: number; readonly project_id: string; readonly person_id: string; readonly display_name: string | null; readonly role: string; readonly granted_at: Timestamp; readonly last_review: LastAccessReview; readonly due_at: Timestamp_6 }
export type OverdueReviews = { readonly as_of: Timestamp; readonly items: ReadonlyArray<OverdueReview>; /** The `after_id` of the next page; null on the last page. A page may be short before the last */ readonly next_after_id: string | null }
export type OwnAccount = { readonly person_id: string; readonly issuer: string; readonly subject: string; readonly display_name: string | null; readonly email: string | null; readonly email_verified: boolean; readonly status: "active" | "suspended" | "disabled"; readonly version: number; readonly created_at: Timestamp; readonly updated_at: Timestamp; readonly linked_identities: ReadonlyArray<{ readonly issuer: string; readonly subject: string; readonly linked_at: Timestamp }>; readonly memberships: ReadonlyArray<{ readonly institution_id: string; readonly institution_name: string | null; readonly role: "sponsor" | "administrator" | "member"; readonly state: "invited" | "active" | "suspended" | "ended"; readonly effective: boolean }>; readonly projects: ReadonlyArray<{ readonly project_id: string; readonly name: string | null; readonly relation: "owner" | "user"; readonly access_state: "none" | "active" | "revoked"; readonly effective: "effective" | "not_effective" | "unknown" }>; readonly operator: boolean; readonly auditor: boolean }
export type OwnAuditPage = { readonly items: ReadonlyArray<OwnAuditRecord>; readonly next_after_id: NextAfterId }
export type OwnAuditRecord = { readonly id: string; readonly at: Timestamp; readonly request_id: string | null; readonly route: string | null; readonly action: string; readonly subject: string | null; readonly outcome: "done" | "refused" | "failed"; readonly status: number | null; readonly code: string | null }
export type OwnCampaignItem = { readonly item_id: string; readonly campaign_id: string; readonly campaign_name: string; readonly deadline: Timestamp; readonly institution_id: string; readonly institution_name: string; readonly access_id: string; readonly access_version: number; readonly project_id: string; readonly project_name: string; readonly person_id: string; readonly display_name: string | null; readonly role: string; readonly granted_at: Timestamp; readonly delegate_person_id: string | null }
export type OwnCampaignItems = { readonly items: ReadonlyArray<OwnCampaignItem> }
export type OwnRequest = { readonly id: string; readonly kind: "organization" | "website" | "access" | "enrollment" | "launch" | "link" | "membership" | "authenticator_reset" | "access_revocation"; readonly author_person_id: string; readonly state: "submitted" | "approved" | "declined" | "superseded" | "expired" | "held" | "invited" | "accepted" | "revoked" | "proposed" | "launched" | "pending_review" | "linked"; readonly institution_id: string | null; readonly project_id: string | null; /** Of an organization or a website: its name, as it was asked for. */ readonly name: string | null; /** Of an enrollment: the invited address, masked, but recognisable. */ readonly recipient: string | null; /** Of Access: when it ends, as it was asked for. */ readonly ends_at: Timestamp | null; /** Of a membership: whose, and what is asked for. */ readonly membership: { readonly person_id: string; readonly role: MembershipRole; readonly state: MembershipState } | null; readonly reason: string; readonly expires_at: Timestamp | null; readonly decided_at: Timestamp | null; /** Whether its author withdrew it; its state is then `declined`, `superseded` or `revoked`, by its kind. */ readonly withdrawn: boolean; /** Of an approved link: when the two identities become one, unless the other side objects. */ readonly effective_at: Timestamp | null; /** Of an approved launch that is held: the condition that it waits for. */ readonly held_reason: string | null; /** Of a website: its client at the identity provider, once the provider's job has made it. */ readonly client_id: string | null; readonly result_id: string | null; readonly delivery: MailDelivery | null; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null; readonly policy_review: OpenedPolicyReview | null }
export type OwnRequests = { readonly items: ReadonlyArray<OwnRequest> }
export type OwnerChange = { readonly reason: string; readonly person_id: string; /** Also `t`, `yes`, `y`, `on`, `1` and their opposites. */ readonly active?: boolean }
export type PausedBy = "owner" | "operator" | "system"
export type PersonCreate = { readonly reason: string; readonly issuer: string; readonly subject: string }
export type PersonHold = { readonly person_id: string; readonly transmitter: string; readonly kind: "disabled" | "purged"; readonly told_at: Timestamp; readonly since: Timestamp }
export type PersonHolds = { readonly items: ReadonlyArray<PersonHold>; readonly next_after_id: string | null }
export type PersonName = { /** As it was asked for, also where the person was merged since */ readonly person_id: string; readonly display_name: string | null }
export type PersonNames = { readonly items: ReadonlyArray<PersonName> }
export type Plan = "free" | "starter" | "pro" | "business"
export type PlatformTransfer = DomainTransfer & { /** The address of the account that owned the domain; null where the account is gone */ readonly source_email: string | null; /** Whether an administrator moved the domain at once */ readonly forced: boolean }
export type PlatformTransferPage = { readonly items: ReadonlyArray<PlatformTransfer>; /** The `after_id` of the next page; null where this page is the last */ readonly next_after_id: string | null }
export type PolicyReview = { readonly review_id: string; readonly state: "open" | "applied" | "declined" | "superseded"; readonly required_roles: ReadonlyArray<string>; readonly approvals: ReadonlyArray<{ readonly role: string; readonly person_id: string; readonly approved_at: Timestamp }> }
export type PolicyReviewDetail = ListedPolicyReview & { readonly signers: PolicySigners | null }
export type PolicyReviews = { readonly items: ReadonlyArray<ListedPolicyReview> }
export type PolicySigners = { readonly people: ReadonlyArray<{ readonly person_id: string; readonly role: string; readonly stands_in: boolean; readonly refusal: "author" | "signed" | "own_authenticators" | "own_access" | "not_effective" | "not_independent" | null }>; readonly more: number; readonly operators: number }
export type Problem = { /** `urn:bailiwick:problem:` and the code */ readonly type: string; readonly title?: string; readonly status?: number; readonly detail?: string; readonly instance?: string; readonly code: string; readonly request_id?: string; readonly audit_id?: string | null; /** As `Retry-After` */ readonly retry_after?: number }
export type Project = ListedProject & { /** The request that registered the project; null for a project of the directory. Null for a caller who only has Access to the project. */ readonly registration: ProjectRegistration | null; /** Null for a caller who only has Access to the project. */ readonly owners: ReadonlyArray<ProjectOwner> | null; /** The newest 20 launch proposals, newest first. Null for a caller who only has Access to the project. */ readonly launches: ReadonlyArray<ProjectLaunch> | null }
export type ProjectEvent = { readonly event_id: string; readonly epoch: number; readonly position: number; readonly kind: string; /** The event's URI in the signed message */ readonly event_type: string; /** The message's `sub_id` */ readonly subject: { readonly [name: string]: unknown }; /** The members of the event, without the ones that all events have */ readonly details: { readonly [name: string]: unknown }; readonly recorded_at: Timestamp; /** Null until the event is signed, and so can be read */ readonly signed_at: Timestamp | null }
export type ProjectEvents = { readonly items: ReadonlyArray<ProjectEvent> }
export type ProjectLaunch = LaunchProposal & { readonly author_person_id: string; readonly decided_at: Timestamp | null }
export type ProjectLaunches = { readonly items: ReadonlyArray<ProjectLaunch> }
export type ProjectName = { readonly project_id: string; readonly name: string }
export type ProjectNames = { readonly items: ReadonlyArray<ProjectName> }
export type ProjectOwner = { readonly person_id: string; readonly active: boolean; readonly since: Timestamp | null }
export type ProjectOwners = { readonly project_id: string; readonly version: number; readonly owners: ReadonlyArray<ProjectOwner> }
export type ProjectRegistration = { readonly request_id: string; readonly state: "submitted" | "approved" | "declined" | "superseded"; readonly reason: string; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null; readonly policy_review: OpenedPolicyReview | null; readonly author_person_id: string; readonly decided_at: Timestamp | null }
export type ProjectState = "registered" | "launch_proposed" | "launched" | "held" | "withdrawn"
export type QueueName = "first_tries" | "retries" | "outbox_unordered" | "outbox_ordered" | "mails" | "slack" | "jobs" | "timers" | "provider_jobs"
export type Queues = { readonly as_of: Timestamp; readonly items: ReadonlyArray<{ readonly queue: QueueName; readonly depth: number; readonly capped: boolean; readonly due: number; readonly oldest_due_at: Timestamp | null; readonly leased: number; readonly failing: number; readonly per_minute: number | null }> }
export type ReadinessChecks = { readonly database: "ok" | "fail"; readonly schema: "ok" | "fail"; readonly event_bus: "ok" | "fail" }
export type Ready = { readonly status: "ready" | "degraded"; readonly checks: ReadinessChecks; readonly note?: string }
export type Reason = { readonly reason: string }
export type ReleasedPerson = { readonly person_id: string; readonly holds: number; readonly status: "active" | "suspended" | "disabled" }
export type ReplayCount = { readonly deliveries: number }
export type ReplayRequest = { readonly since: string; readonly until?: string | null; /** `missed`: events that came while it was paused, once each; by default dead letters */ readonly status?: "dead_letter" | "delivered" | "missed" | null; /** Events of this type only; by default of every type */ readonly event_type?: EventType | null }
export type RequestCreate = { readonly reason: string; readonly institution_id: string; readonly project_id: string }
export type RequestFields = { readonly name: string; readonly organization_type: string; readonly website: string; readonly domains: ReadonlyArray<string>; readonly purpose: string; readonly contacts: ReadonlyArray<ContactBody>; readonly reason: string }
export type RequestableProject = { readonly project_id: string; readonly name: string }
export type RequestableProjects = { readonly items: ReadonlyArray<RequestableProject> }
export type ReviewedAccess = { readonly access_id: string; readonly version: number; readonly digest: Digest }
export type RolloutDecision = { readonly action: "hold" | "fail" | "release"; readonly reason: string }
export type RolloutStanding = { readonly project_id: string; readonly rollout: "hold" | "fail" | null; readonly state: ProjectState; readonly version: number; readonly job_id: string | null; readonly changed: boolean }
export type SecretRotation = { /** Also as a string: `10`, `+10`, `1_000`, `10.0`. */ readonly overlap_seconds?: number }
export type SessionList = { readonly items: ReadonlyArray<{ readonly session_id: string; readonly current: boolean; readonly state: "active" | "expired" | "revoked"; readonly issued_at: Timestamp; readonly authenticated_at: Timestamp | null; readonly last_seen_at: Timestamp; readonly expires_at: Timestamp; readonly aal: "aal1" | "aal2" | "aal3" | "unknown"; readonly authentication_methods: ReadonlyArray<{ readonly method: string; readonly aal: "aal1" | "aal2" | "aal3" | "unknown"; readonly completed_at: Timestamp | null }>; readonly client_id: string; readonly user_agent: string | null; readonly ip_prefix: string | null; readonly revoked_at: Timestamp | null }>; readonly total: number }
export type SigningKeyRing = { readonly items: ReadonlyArray<{ readonly kid: string; readonly state: "announced" | "published" | "active" | "retiring" | "retired" | "compromised"; readonly since: Timestamp; readonly projects: number }>; readonly pins: ReadonlyArray<string>; readonly transition: KeyTransition | null }
export type SpanReplayed = { readonly deliveries: number; readonly asked_at: Timestamp }
export type SponsorDecision = { readonly decision_id: string; readonly person_id: string; readonly decided_at: Timestamp; readonly digest: Digest; readonly locked: true }
export type SsfTransmitterConfiguration = { readonly spec_version: string; readonly issuer: string; readonly jwks_uri: string; readonly delivery_methods_supported: ReadonlyArray<string>; readonly configuration_endpoint: string; readonly status_endpoint: string; readonly add_subject_endpoint: string; readonly remove_subject_endpoint: string; readonly verification_endpoint: string; readonly critical_subject_members: ReadonlyArray<string>; readonly authorization_schemes: ReadonlyArray<{ readonly spec_urn: string }>; readonly default_subjects: "ALL" | "NONE" }
export type StartAction = { readonly kind: CredentialActionKind; readonly target_id?: string | null; readonly label?: string | null }
export type StartAssertion = { readonly subject: string; readonly origin?: string | null; readonly user_verification?: "required" | "preferred" | null }
export type StartedAction = { readonly intent_id: string; readonly kind: CredentialActionKind; readonly state: "pending"; readonly expires_at: Timestamp; readonly challenge: { readonly type: "webauthn.create"; readonly public_key: { readonly [name: string]: unknown } } | { readonly type: "totp"; readonly otpauth_uri: string | null; readonly secret: string | null } | { readonly type: "confirm"; readonly summary: string } }
export type StartedAssertion = { readonly assertion_id: string; readonly kinds: ReadonlyArray<"passkey" | "security_key" | "totp" | "recovery_codes" | "password">; readonly expires_at: Timestamp; readonly public_key: { readonly [name: string]: unknown } | null }
export type StreamChange = { readonly stream_id: string; readonly iss?: string; readonly aud?: string | ReadonlyArray<string>; readonly events_supported?: ReadonlyArray<string>; readonly events_delivered?: ReadonlyArray<string>; readonly min_verification_interval?: number; readonly delivery?: StreamPushDelivery | StreamPollRequest; readonly events_requested?: ReadonlyArray<string>; readonly description?: string }
export type StreamConfiguration = { readonly stream_id: string; readonly iss: string; readonly aud: string; readonly delivery: StreamPushDelivery | StreamPollDelivery; readonly events_supported: ReadonlyArray<string>; readonly events_requested?: ReadonlyArray<string>; readonly events_delivered: ReadonlyArray<string>; readonly min_verification_interval: number; readonly description?: string }
export type StreamCreation = { readonly stream_id?: string; readonly iss?: string; readonly aud?: string | ReadonlyArray<string>; readonly events_supported?: ReadonlyArray<string>; readonly events_delivered?: ReadonlyArray<string>; readonly min_verification_interval?: number; readonly delivery?: StreamPushDelivery | StreamPollRequest; readonly events_requested?: ReadonlyArray<string>; readonly description?: string }
export type StreamPollDelivery = { readonly method: "urn:ietf:rfc:8936"; readonly endpoint_url: string }
export type StreamPollRequest = { readonly method: "urn:ietf:rfc:8936"; readonly endpoint_url?: string | null }
export type StreamPolling = { readonly maxEvents?: number; readonly returnImmediately?: boolean; readonly ack?: ReadonlyArray<string>; readonly setErrs?: { readonly [name: string]: { readonly err: string; readonly description?: string } } }
export type StreamPushDelivery = { readonly method: "urn:ietf:rfc:8935"; readonly endpoint_url: string; readonly authorization_header?: string }
export type StreamSets = { readonly sets: { readonly [name: string]: string }; readonly moreAvailable: boolean }
export type StreamState = { readonly stream_id: string; readonly status: "enabled" | "paused" | "disabled"; readonly reason?: string }
export type StreamSubjectAddition = { readonly stream_id: string; readonly subject: SubjectIdentifier; readonly verified?: boolean }
export type StreamSubjectRemoval = { readonly stream_id: string; readonly subject: SubjectIdentifier }
export type StreamVerification = { readonly stream_id: string; readonly state?: string }
export type SubjectIdentifier = { readonly format: string }
export type TemporaryAccessCreate = { readonly reason: string; readonly institution_id: string; readonly project_id: string; readonly ends_at: string }
export type Timestamp = string
export type Timestamp_1 = string
export type Timestamp_2 = string
export type Timestamp_3 = string
export type Timestamp_4 = string
export type Timestamp_5 = string
export type Timestamp_6 = string
export type Timestamp_7 = string
export type TransferBlocker = { readonly kind: "broadcast" | "scheduled_email"; readonly id: string; readonly name: string; readonly status: "scheduled" | "sending"; readonly scheduled_at: Timestamp | null }
export type Transition = { /** Also as a string: `10`, `+10`, `1_000`, `10.0`. */ readonly expected_version: number; readonly reason: string }
export type ValidationError = { readonly loc: ReadonlyArray<string | number>; readonly msg: string; readonly type: string; readonly input?: unknown; readonly ctx?: { readonly [name: string]: unknown } }
export type Webhook = { readonly id: string; readonly url: string; readonly description: string | null; readonly events: ReadonlyArray<EventType>; readonly is_active: boolean; /** Since when it is paused; null while it is active, or where an earlier release paused it */ readonly paused_at: Timestamp | null; /** `owner`: the account; `operator`: an operator, who alone can resume it; `system`: it failed for days; null as above */ readonly paused_by: PausedBy | null; /** The names of the custom headers; no answer shows their values */ readonly header_names: ReadonlyArray<string>; /** Whether its requests carry basic authentication */ readonly basic_auth: boolean; /** Whether a retry waits for as long as the receiver asks by `Retry-After` */ readonly honor_retry_after: boolean; /** How many deliveries may begin in a second; null where there is no limit */ readonly rate_limit: number | null; /** `failing`: an attempt failed, and none has succeeded in a later minute; `unused`: no attempt has ended yet */ readonly health: "unused" | "healthy" | "failing" | "paused"; /** When the last attempt that succeeded began: the minute, some seconds late; null where none did */ readonly last_success_at: Timestamp | null; /** The minute of the first failure after the last success; null where there is none */ readonly failing_since: Timestamp | null; readonly created_at: Timestamp }
export type WebhookAttempt = { readonly cycle: number; readonly attempt: number; readonly started_at: Timestamp; readonly duration_ms: number; readonly response_status: number | null; readonly error: string | null; /** Without custom headers; of a signature its first characters alone: it is not kept */ readonly request_headers: { readonly [name: string]: string }; /** Up to 4 KiB; credentials, and what repeats a custom header, are masked. Null for a success at the first attempt, unless the installation keeps it */ readonly response_headers: { readonly [name: string]: string } | null; /** Of a failed answer, the first 4,096 characters */ readonly response_body: string | null }
export type WebhookBacklogs = { readonly as_of: Timestamp; readonly capped: boolean; readonly items: ReadonlyArray<{ readonly webhook_id: string; readonly account_id: string; readonly url: string | null; readonly paused: boolean; readonly paused_by: PausedBy | null; readonly depth: number; readonly retries: number; readonly leased: number; readonly oldest_due_at: Timestamp | null }> }
export type WebhookBasicAuth = { readonly username: string; readonly password: string }
export type WebhookBody = { readonly event: EventType; readonly email_id: string; readonly recipient: string; readonly timestamp: string; readonly metadata: EventMetadata }
export type WebhookDelivery = { readonly id: string; readonly webhook_id: string; readonly event_type: EventType; readonly status: DeliveryStatus; readonly response_status: number | null; readonly attempt: number; readonly next_retry_at: Timestamp | null; readonly created_at: Timestamp }
export type WebhookDeliveryDetails = WebhookDelivery & { readonly payload: WebhookBody; readonly response_body: string | null; readonly endpoint_url: string | null; readonly error: string | null; readonly attempts: ReadonlyArray<WebhookAttempt> }
export type WebhookDeliveryList = { readonly items: ReadonlyArray<WebhookDelivery>; /** The `after_id` of the next page; null on the last page. A page with a filter may hold fewer items than `limit`, or none, and still have a next one: each looks at a bounded number of deliveries */ readonly next_after_id: string | null }
export type WebhookDeliveryPage = { readonly items: ReadonlyArray<WebhookDelivery>; readonly total: number; readonly page: number; readonly limit: number }
export type WebhookDeliverySent = WebhookDeliveryDetails & { /** Null until the first attempt has ended */ readonly request: WebhookSentRequest | null }
export type WebhookDetails = Webhook & { readonly updated_at: Timestamp; /** When the secret that signs was made or brought; null where an earlier release made it */ readonly secret_made_at: Timestamp | null; /** Until then the secret before the last rotation signs as well; null where one secret signs */ readonly overlap_until: Timestamp | null }
export type WebhookHours = { readonly webhook_id: string; /** Oldest first; the hour that has begun is the last one. Hours without an attempt are left out */ readonly hours: ReadonlyArray<DeliveryHour> }
export type WebhookSentRequest = { readonly url: string | null; /** The `request_headers` of the last attempt */ readonly headers: { readonly [name: string]: string }; /** The body, byte for byte as every attempt sends it */ readonly body: string }
export type WebhookTestRequest = { /** The type of the sample; by default `email.delivered` */ readonly event?: EventType | null }
export type WebhookUpdate = { /** https, at most 2048 characters, no user information, no private or reserved address */ readonly url?: string | null; readonly events?: ReadonlyArray<EventType> | null; /** What the webhook is for; an empty text removes it */ readonly description?: string | null; readonly headers?: CustomHeaders | null; readonly basic_auth?: WebhookBasicAuth | null; /** Lets `Retry-After` of a failed answer make the next attempt later, by a day at most; by default false */ readonly honor_retry_after?: boolean | null; /** How many deliveries may begin in a second; 0, the default, for any number */ readonly rate_limit?: number | null; /** Also `t`, `yes`, `y`, `on`, `1` and their opposites. */ readonly is_active?: boolean | null }
export type WebhookWithSecret = Webhook & { /** Shown once: null where the request brought it, or repeats an earlier one of the same `Idempotency-Key` */ readonly secret: string | null }
export type Website = WithdrawnWebsite & { readonly owner_person_id: string; readonly policy_review: OpenedPolicyReview | null }
export type WebsiteRegistration = { readonly name: string; readonly website: string; readonly connector_kind?: "service_connector" | "standard_oidc"; readonly connector_product?: string | null; readonly preview_digest?: string | null; readonly owner_person_id: string; readonly environment: Environment; readonly redirect_uris?: ReadonlyArray<string>; readonly post_logout_redirect_uris?: ReadonlyArray<string>; readonly backchannel_logout_uri?: string | null; readonly requested_scopes: ReadonlyArray<"openid" | "profile" | "email">; readonly reason: string }
export type WithdrawnWebsite = { readonly project_id: string; readonly institution_id: string; readonly client_id: string | null; readonly name: string; readonly website: string; readonly connector_kind: "service_connector" | "standard_oidc"; readonly connector_product: string | null; readonly preview_digest: string | null; readonly environment: Environment; readonly redirect_uris: ReadonlyArray<string>; readonly post_logout_redirect_uris: ReadonlyArray<string>; readonly backchannel_logout_uri: string | null; readonly requested_scopes: ReadonlyArray<string>; readonly state: ProjectState; readonly held_reason: string | null; readonly reason: string; readonly version: number; readonly created_at: Timestamp; readonly event_id: string | null; readonly job_id: string | null }
export type Workspace = { readonly id: string; readonly name: string; /** The caller's role; of several the one that may do more */ readonly role: "owner" | "admin" | "member"; readonly created_at: Timestamp }
export type WorkspacePage = { readonly items: ReadonlyArray<Workspace>; /** The `after_id` of the next page; null on the last page */ readonly next_after_id: string | null }
export type ContactBody = { readonly name: string; readonly email: string; readonly role?: "owner" | "technical" | "security" | "billing" | null; readonly phone?: string | null }

/** The problems by their codes: the status, and the members beside those that every problem has. */
export interface Problems {
  readonly access_not_active: { readonly status: 409; readonly members: None }
  readonly access_version_superseded: { readonly status: 409; readonly members: None }
  readonly administrator_not_effective: { readonly status: 403; readonly members: None }
  readonly api_key_limit: { readonly status: 403; readonly members: None }
  readonly audience_required: { readonly status: 400; readonly members: { readonly audiences?: ReadonlyArray<string> } }
  readonly auditor_reads_only: { readonly status: 403; readonly members: None }
  readonly body_too_large: { readonly status: number; readonly members: None }
  readonly broadcasts_in_flight: { readonly status: 409; readonly members: { readonly blockers?: ReadonlyArray<TransferBlocker> } }
  readonly chain_mismatch: { readonly status: 409; readonly members: None }
  readonly console_read_only: { readonly status: 403; readonly members: None }
  readonly csrf_rejected: { readonly status: 403; readonly members: None }
  readonly cursor_ahead: { readonly status: 409; readonly members: None }
  readonly cursor_epoch_changed: { readonly status: 409; readonly members: None }
  readonly cursor_expired: { readonly status: 410; readonly members: None }
  readonly dependency_unavailable: { readonly status: 503; readonly members: None }
  readonly domain_limit: { readonly status: 403; readonly members: None }
  readonly domain_not_verified: { readonly status: 409; readonly members: None }
  readonly environment_held: { readonly status: 403; readonly members: None }
  readonly environment_mismatch: { readonly status: 409; readonly members: { readonly project_environment?: "staging" | "production" } }
  readonly expired: { readonly status: 410; readonly members: None }
  readonly forbidden: { readonly status: 403; readonly members: None }
  readonly four_eyes_collapsed: { readonly status: 409; readonly members: None }
  readonly four_eyes_required: { readonly status: 403; readonly members: None }
  readonly grant_event_mismatch: { readonly status: 409; readonly members: None }
  readonly headers_too_large: { readonly status: number; readonly members: None }
  readonly held: { readonly status: 503; readonly members: None }
  readonly idempotency_in_progress: { readonly status: 409; readonly members: None }
  readonly idempotency_key_reused: { readonly status: 409; readonly members: None }
  readonly installed_version_mismatch: { readonly status: 409; readonly members: None }
  readonly insufficient_user_authentication: { readonly status: 401; readonly members: { readonly acr_values?: string; readonly max_age?: number } }
  readonly intent_expired: { readonly status: 410; readonly members: None }
  readonly internal: { readonly status: number; readonly members: None }
  readonly invalid_credentials: { readonly status: 401; readonly members: None }
  readonly invalid_state: { readonly status: 409; readonly members: { readonly state?: string; readonly allowed?: ReadonlyArray<string> } }
  readonly invalid_token: { readonly status: 401; readonly members: None }
  readonly last_owner: { readonly status: 409; readonly members: None }
  readonly launch_url_unverified: { readonly status: 409; readonly members: None }
  readonly malformed_request: { readonly status: 400; readonly members: None }
  readonly membership_not_active: { readonly status: 403; readonly members: None }
  readonly misdirected_request: { readonly status: number; readonly members: None }
  readonly not_acceptable: { readonly status: number; readonly members: None }
  readonly not_current_sponsor: { readonly status: 403; readonly members: None }
  readonly not_found: { readonly status: 404; readonly members: None }
  readonly not_pending: { readonly status: 409; readonly members: None }
  readonly not_stoppable: { readonly status: 409; readonly members: None }
  readonly org_access_lost: { readonly status: 403; readonly members: None }
  readonly outcome_unknown: { readonly status: 504; readonly members: { readonly job_id?: string } }
  readonly owner_not_active: { readonly status: 409; readonly members: None }
  readonly paused_by_operator: { readonly status: 409; readonly members: None }
  readonly person_exists: { readonly status: 409; readonly members: None }
  readonly portal_binding_mismatch: { readonly status: 403; readonly members: None }
  readonly precondition_failed: { readonly status: 412; readonly members: None }
  readonly preferences_invalid: { readonly status: 400; readonly members: None }
  readonly preview_changed: { readonly status: 409; readonly members: None }
  readonly proof_consumed: { readonly status: 409; readonly members: None }
  readonly proof_expired: { readonly status: 410; readonly members: None }
  readonly rate_limited: { readonly status: 429; readonly members: { readonly limit?: number; readonly window_seconds?: number } }
  readonly request_exists: { readonly status: 409; readonly members: None }
  readonly request_timeout: { readonly status: number; readonly members: None }
  readonly review_exists: { readonly status: 409; readonly members: None }
  readonly role_required: { readonly status: 403; readonly members: { readonly scope?: string } }
  readonly scheduled_emails: { readonly status: 409; readonly members: { readonly blockers?: ReadonlyArray<TransferBlocker> } }
  readonly self_transfer: { readonly status: 409; readonly members: None }
  readonly stream_limit: { readonly status: 409; readonly members: None }
  readonly subject_limit: { readonly status: 403; readonly members: None }
  readonly supplied_mismatch: { readonly status: 400; readonly members: { readonly properties?: ReadonlyArray<string> } }
  readonly target_not_found: { readonly status: 404; readonly members: None }
  readonly transfer_active: { readonly status: 409; readonly members: None }
  readonly unsupported_media_type: { readonly status: number; readonly members: None }
  readonly version_conflict: { readonly status: 409; readonly members: { readonly current_version?: number } }
  readonly webhook_limit: { readonly status: 409; readonly members: None }
  readonly website_exists: { readonly status: 409; readonly members: None }
  readonly wrong_recipient: { readonly status: 403; readonly members: None }
}

/** The operations by method and path. */
export interface Operations {
  /** What the transmitter can do, and where (Shared Signals Framework 1.0, 7) */
  readonly "GET /.well-known/ssf-configuration/lifecycle": { readonly request: None; readonly answer: SsfTransmitterConfiguration }
  /** Whether the process is live */
  readonly "GET /health": { readonly request: None; readonly answer: Health }
  /** Whether it can serve: database, schema, event bus */
  readonly "GET /ready": { readonly request: None; readonly answer: Ready }
  /** Your account, its plan, and how much of the plan's limits is used */
  readonly "GET /v1/account": { readonly request: None; readonly answer: Account }
  /** Move a domain at once, as a platform administrator who has just signed in */
  readonly "POST /v1/admin/domain-transfers/{domain_id}": { readonly request: { readonly params: { readonly domain_id: string }; readonly body: ForcedDomainTransfer }; readonly answer: DomainTransfer }
  /** List the transfers of all accounts, most recent first, as a platform administrator */
  readonly "GET /v1/admin/domain-transfers": { readonly request: { readonly query?: { readonly limit?: number | undefined; readonly after_id?: string | undefined; readonly status?: "pending" | "accepted" | "completed" | "declined" | "cancelled" | "reversed" | "expired" | undefined; readonly name?: string | undefined } }; readonly answer: PlatformTransferPage }
  /** List the active API keys, newest first */
  readonly "GET /v1/api-keys/": { readonly request: None; readonly answer: ReadonlyArray<ApiKey> }
  /** Create an API key; its secret is in this answer and nowhere else */
  readonly "POST /v1/api-keys/": { readonly request: { readonly body: NewApiKey }; readonly answer: CreatedApiKey }
  /** Revoke an API key for good */
  readonly "DELETE /v1/api-keys/{key_id}": { readonly request: { readonly params: { readonly key_id: string } }; readonly answer: undefined }
  /** Check a passkey's signature, a one-time code or a recovery code */
  readonly "POST /v1/assertions/{assertion_id}/check": { readonly request: { readonly params: { readonly assertion_id: string }; readonly body: CheckAssertion }; readonly answer: CheckedAssertion }
  /** Start the check of a person's authenticators, for the issuer that signs them in */
  readonly "POST /v1/assertions": { readonly request: { readonly body: StartAssertion }; readonly answer: StartedAssertion }
  /** Make a link that shows your webhooks in a frame, once; by an API key, 404 where EMBED_ORIGINS is not set */
  readonly "POST /v1/console/embed-links": { readonly request: { readonly body?: NewEmbedLink }; readonly answer: EmbedLink }
  /** Exchange an embed link's token for a session of an hour; the frame's own script asks it */
  readonly "POST /v1/console/embed-sessions": { readonly request: { readonly body: NewEmbedSession }; readonly answer: EmbedSession }
  /** Read the console's session: its visitor, and what it may show; 404 where there is no console */
  readonly "GET /v1/console/session": { readonly request: None; readonly answer: ConsoleSession }
  /** Whether you could accept a domain now; decided again on accept */
  readonly "GET /v1/domain-transfers/accept-eligibility": { readonly request: None; readonly answer: AcceptEligibility }
  /** Accept a transfer that is addressed to your account's email */
  readonly "POST /v1/domain-transfers/by-id/{transfer_id}/accept": { readonly request: { readonly params: { readonly transfer_id: string }; readonly body?: DomainTransferAcceptance }; readonly answer: DomainTransfer }
  /** List the transfers to you that are pending or accepted */
  readonly "GET /v1/domain-transfers/incoming": { readonly request: None; readonly answer: ReadonlyArray<DomainTransfer> }
  /** List the transfers that you initiated, most recent first */
  readonly "GET /v1/domain-transfers/outgoing": { readonly request: None; readonly answer: ReadonlyArray<DomainTransfer> }
  /** List the transfers to you that have ended, most recent first */
  readonly "GET /v1/domain-transfers/received": { readonly request: { readonly query?: { readonly limit?: number | undefined; readonly after_id?: string | undefined } }; readonly answer: DomainTransferPage }
  /** Stop an accepted transfer within its safety window; the token alone authorizes */
  readonly "POST /v1/domain-transfers/stop/{stop_token}": { readonly request: { readonly params: { readonly stop_token: string } }; readonly answer: DomainTransfer }
  /** Accept by the token of the invitation; the safety window begins */
  readonly "POST /v1/domain-transfers/{token}/accept": { readonly request: { readonly params: { readonly token: string }; readonly body?: DomainTransferAcceptance }; readonly answer: DomainTransfer }
  /** Decline a transfer as its recipient */
  readonly "POST /v1/domain-transfers/{transfer_id}/decline": { readonly request: { readonly params: { readonly transfer_id: string } }; readonly answer: DomainTransfer }
  /** Take a pending offer back */
  readonly "DELETE /v1/domain-transfers/{transfer_id}": { readonly request: { readonly params: { readonly transfer_id: string } }; readonly answer: DomainTransfer }
  /** Read one transfer as a party of it, also one that has ended */
  readonly "GET /v1/domain-transfers/{transfer_id}": { readonly request: { readonly params: { readonly transfer_id: string } }; readonly answer: DomainTransfer }
  /** The domain's DKIM key and the one that an accepted transfer brings, for its parties */
  readonly "GET /v1/domains/{domain_id}/dkim": { readonly request: { readonly params: { readonly domain_id: string } }; readonly answer: DomainDkim }
  /** Offer a domain to another account; it is mailed an accept link */
  readonly "POST /v1/domains/{domain_id}/transfer": { readonly request: { readonly params: { readonly domain_id: string }; readonly body: NewDomainTransfer }; readonly answer: DomainTransfer }
  /** Read a domain of yours or of your workspaces */
  readonly "GET /v1/domains/{domain_id}": { readonly request: { readonly params: { readonly domain_id: string } }; readonly answer: Domain }
  /** List your domains and those of your workspaces, ascending by id */
  readonly "GET /v1/domains": { readonly request: { readonly query?: { readonly limit?: number | undefined; readonly after_id?: string | undefined; readonly name?: string | undefined } }; readonly answer: DomainPage }
  /** Accept an invitation by the token of its mail */
  readonly "POST /v1/enrollments/{token}/accept": { readonly request: { readonly params: { readonly token: string } }; readonly answer: AcceptedEnrollment }
  /** The event types, with an example of each and your webhooks that take it */
  readonly "GET /v1/event-types": { readonly request: None; readonly answer: EventTypes }
  /** Approve the Sponsor's locked decision, as another, effective administrator */
  readonly "POST /v1/institutions/{institution_id}/access-grant-reviews/{review_id}/approve": { readonly request: { readonly params: { readonly institution_id: string; readonly review_id: string }; readonly query?: { readonly dry_run?: boolean | undefined }; readonly headers?: { readonly "if-match"?: string | undefined }; readonly body: Reason }; readonly answer: GrantReceipt | undefined }
  /** The evidence of one review: each decision, chained by digests */
  readonly "GET /v1/institutions/{institution_id}/access-grant-reviews/{review_id}/evidence": { readonly request: { readonly params: { readonly institution_id: string; readonly review_id: string } }; readonly answer: GrantEvidence }
  /** End a review's authority; the Access and the evidence stay as they are */
  readonly "POST /v1/institutions/{institution_id}/access-grant-reviews/{review_id}/revoke": { readonly request: { readonly params: { readonly institution_id: string; readonly review_id: string }; readonly headers?: { readonly "if-match"?: string | undefined }; readonly body: Reason }; readonly answer: GrantReceipt }
  /** One review, as the list shows it, with its present validity */
  readonly "GET /v1/institutions/{institution_id}/access-grant-reviews/{review_id}": { readonly request: { readonly params: { readonly institution_id: string; readonly review_id: string } }; readonly answer: GrantReview }
  /** Reviews of Access grants with their present validity, and the Access that could be proposed */
  readonly "GET /v1/institutions/{institution_id}/access-grant-reviews": { readonly request: { readonly params: { readonly institution_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined; readonly after_access_id?: string | undefined } }; readonly answer: GrantReviewList }
  /** Propose a review of exactly one active Access version, as a Sponsor */
  readonly "POST /v1/institutions/{institution_id}/access-grant-reviews": { readonly request: { readonly params: { readonly institution_id: string }; readonly body: GrantProposal }; readonly answer: GrantReceipt }
  /** Confirm that an Access is still needed, as an owner of its project, a Sponsor or an administrator */
  readonly "POST /v1/institutions/{institution_id}/access/{access_id}/confirm": { readonly request: { readonly params: { readonly institution_id: string; readonly access_id: string }; readonly body: AccessVersionDecision }; readonly answer: AccessConfirmation }
  /** Why a person has, or had, an Access: who asked and who signed, every version with its event, every review */
  readonly "GET /v1/institutions/{institution_id}/access/{access_id}/explain": { readonly request: { readonly params: { readonly institution_id: string; readonly access_id: string } }; readonly answer: AccessExplanation }
  /** Propose that an Access is revoked; another person, an administrator, decides */
  readonly "POST /v1/institutions/{institution_id}/access/{access_id}/propose-revocation": { readonly request: { readonly params: { readonly institution_id: string; readonly access_id: string }; readonly body: AccessVersionDecision }; readonly answer: AccessRevocationRequest }
  /** Bring the end of an Access forward, as an administrator */
  readonly "POST /v1/institutions/{institution_id}/access/{access_id}/shorten": { readonly request: { readonly params: { readonly institution_id: string; readonly access_id: string }; readonly body: AccessShortening }; readonly answer: AccessEnd }
  /** Every Access with its version and review, ascending by id, as a Sponsor, administrator, operator or auditor */
  readonly "GET /v1/institutions/{institution_id}/access": { readonly request: { readonly params: { readonly institution_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined; readonly at?: string | undefined } }; readonly answer: InstitutionAccess }
  /** Ask that all authenticators of a member who lost them are removed; an administrator decides */
  readonly "POST /v1/institutions/{institution_id}/authenticator-resets": { readonly request: { readonly params: { readonly institution_id: string }; readonly body: AuthenticatorResetCreate }; readonly answer: AuthenticatorResetRequest }
  /** Close a campaign before its deadline, as an administrator */
  readonly "POST /v1/institutions/{institution_id}/campaigns/{campaign_id}/close": { readonly request: { readonly params: { readonly institution_id: string; readonly campaign_id: string }; readonly body: Reason }; readonly answer: CampaignDetail }
  /** Confirm an Access, or propose that it is revoked, as an owner of its project or the item's delegate */
  readonly "POST /v1/institutions/{institution_id}/campaigns/{campaign_id}/items/{item_id}/answer": { readonly request: { readonly params: { readonly institution_id: string; readonly campaign_id: string; readonly item_id: string }; readonly body: CampaignAnswer }; readonly answer: CampaignItem }
  /** Let a member of the institution answer an item, as an administrator or an owner of its project */
  readonly "POST /v1/institutions/{institution_id}/campaigns/{campaign_id}/items/{item_id}/delegate": { readonly request: { readonly params: { readonly institution_id: string; readonly campaign_id: string; readonly item_id: string }; readonly body: CampaignDelegation }; readonly answer: CampaignItem }
  /** The items of a campaign with their answers, ascending by id */
  readonly "GET /v1/institutions/{institution_id}/campaigns/{campaign_id}/items": { readonly request: { readonly params: { readonly institution_id: string; readonly campaign_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined; readonly state?: "open" | "confirmed" | "proposed_for_revocation" | "withdrawn" | "unanswered" | undefined } }; readonly answer: CampaignItems }
  /** Move the deadline of an open campaign, as an administrator */
  readonly "POST /v1/institutions/{institution_id}/campaigns/{campaign_id}/reschedule": { readonly request: { readonly params: { readonly institution_id: string; readonly campaign_id: string }; readonly body: CampaignReschedule }; readonly answer: CampaignDetail }
  /** A campaign, and how many of its items are in which state */
  readonly "GET /v1/institutions/{institution_id}/campaigns/{campaign_id}": { readonly request: { readonly params: { readonly institution_id: string; readonly campaign_id: string } }; readonly answer: CampaignDetail }
  /** Campaigns of an institution, newest first, as a Sponsor, administrator, operator or auditor */
  readonly "GET /v1/institutions/{institution_id}/campaigns": { readonly request: { readonly params: { readonly institution_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: Campaigns }
  /** Open a campaign over a set of Accesses, as an administrator */
  readonly "POST /v1/institutions/{institution_id}/campaigns": { readonly request: { readonly params: { readonly institution_id: string }; readonly body: CampaignCreate }; readonly answer: CampaignDetail }
  /** Propose an ended invitation again, to the same recipient; it is reviewed anew */
  readonly "POST /v1/institutions/{institution_id}/enrollments/{enrollment_id}/renew": { readonly request: { readonly params: { readonly institution_id: string; readonly enrollment_id: string }; readonly body: Reason }; readonly answer: Enrollment }
  /** Revoke an invitation that was not accepted yet, as a person who may invite */
  readonly "POST /v1/institutions/{institution_id}/enrollments/{enrollment_id}/revoke": { readonly request: { readonly params: { readonly institution_id: string; readonly enrollment_id: string }; readonly body: Reason }; readonly answer: Enrollment }
  /** Invitations, newest first, as a Sponsor, administrator or operator */
  readonly "GET /v1/institutions/{institution_id}/enrollments": { readonly request: { readonly params: { readonly institution_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: InstitutionEnrollments }
  /** Propose an invitation; it is mailed once it was reviewed */
  readonly "POST /v1/institutions/{institution_id}/enrollments": { readonly request: { readonly params: { readonly institution_id: string }; readonly body: EnrollmentCreate }; readonly answer: Enrollment }
  /** A part of a pack of evidence, signed: Access, requests and reviews, with the proof of each decision */
  readonly "GET /v1/institutions/{institution_id}/evidence": { readonly request: { readonly params: { readonly institution_id: string }; readonly query?: { readonly person_id?: string | undefined; readonly review_id?: string | undefined; readonly since?: string | undefined; readonly until?: string | undefined; readonly after?: string | undefined } }; readonly answer: string }
  /** Members with their roles, ascending by person, as a Sponsor, administrator, operator or auditor */
  readonly "GET /v1/institutions/{institution_id}/members": { readonly request: { readonly params: { readonly institution_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: InstitutionMembers }
  /** Ask for a member's role and state; a Sponsor and an administrator decide */
  readonly "POST /v1/institutions/{institution_id}/memberships": { readonly request: { readonly params: { readonly institution_id: string }; readonly body: MembershipChange }; readonly answer: MembershipRequest }
  /** Active Access that was not reviewed for a year, as a Sponsor, administrator, operator or auditor */
  readonly "GET /v1/institutions/{institution_id}/overdue-reviews": { readonly request: { readonly params: { readonly institution_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: OverdueReviews }
  /** The institution's projects, ascending by id, as a Sponsor, administrator or operator */
  readonly "GET /v1/institutions/{institution_id}/projects": { readonly request: { readonly params: { readonly institution_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: ListedProjects }
  /** Projects to which the caller, an effective member, may ask for Access, ascending by id */
  readonly "GET /v1/institutions/{institution_id}/requestable-projects": { readonly request: { readonly params: { readonly institution_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: RequestableProjects }
  /** Withdraw a website for good: its client, sessions and service grants end */
  readonly "POST /v1/institutions/{institution_id}/websites/{project_id}/withdraw": { readonly request: { readonly params: { readonly institution_id: string; readonly project_id: string }; readonly body: Transition }; readonly answer: WithdrawnWebsite }
  /** Register a website, as a Sponsor or an effective administrator */
  readonly "POST /v1/institutions/{institution_id}/websites": { readonly request: { readonly params: { readonly institution_id: string }; readonly body: WebsiteRegistration }; readonly answer: Website }
  /** An institution where you have a membership, for operators and auditors any */
  readonly "GET /v1/institutions/{institution_id}": { readonly request: { readonly params: { readonly institution_id: string } }; readonly answer: Institution }
  /** Institutions where you have a membership, for operators and auditors all; ascending by id */
  readonly "GET /v1/institutions": { readonly request: { readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: Institutions }
  /** Ask the provider, by the saved reference, for the outcome of an ambiguous write */
  readonly "POST /v1/jobs/{job_id}/reconcile": { readonly request: { readonly params: { readonly job_id: string }; readonly body: Reason }; readonly answer: Job }
  /** Name the client that a write made at the provider */
  readonly "POST /v1/jobs/{job_id}/repair": { readonly request: { readonly params: { readonly job_id: string }; readonly body: JobRepair }; readonly answer: Job }
  /** Send a write again that failed, or whose outcome cannot be found out */
  readonly "POST /v1/jobs/{job_id}/retry": { readonly request: { readonly params: { readonly job_id: string }; readonly body: Reason }; readonly answer: Job }
  /** Jobs, the newest first, for operators */
  readonly "GET /v1/jobs": { readonly request: { readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: Jobs }
  /** The public keys of lifecycle messages; those of OIDC are elsewhere */
  readonly "GET /v1/lifecycle/jwks": { readonly request: None; readonly answer: JwkSet }
  /** A stream's status */
  readonly "GET /v1/lifecycle/status": { readonly request: { readonly query: { readonly stream_id: string } }; readonly answer: StreamState }
  /** Enable a stream, pause it (events are held) or disable it (they are dropped) */
  readonly "POST /v1/lifecycle/status": { readonly request: { readonly body: StreamState }; readonly answer: StreamState }
  /** Acknowledge events that were taken, and fetch the next ones */
  readonly "POST /v1/lifecycle/streams/{stream_id}/poll": { readonly request: { readonly params: { readonly stream_id: string }; readonly body?: StreamPolling }; readonly answer: StreamSets }
  /** End a stream */
  readonly "DELETE /v1/lifecycle/streams": { readonly request: { readonly query: { readonly stream_id: string } }; readonly answer: undefined }
  /** The named stream, or a list of the receiver's streams */
  readonly "GET /v1/lifecycle/streams": { readonly request: { readonly query?: { readonly stream_id?: string | undefined } }; readonly answer: StreamConfiguration | ReadonlyArray<StreamConfiguration> }
  /** Change the fields of a stream's configuration that are sent */
  readonly "PATCH /v1/lifecycle/streams": { readonly request: { readonly body: StreamChange }; readonly answer: StreamConfiguration }
  /** A new stream of a project's events, by push, or by default by poll */
  readonly "POST /v1/lifecycle/streams": { readonly request: { readonly body?: StreamCreation }; readonly answer: StreamConfiguration }
  /** Replace a stream's configuration: fields that are not sent are deleted */
  readonly "PUT /v1/lifecycle/streams": { readonly request: { readonly body: StreamChange }; readonly answer: StreamConfiguration }
  /** Include a subject again; the answer does not show whether it is known */
  readonly "POST /v1/lifecycle/subjects:add": { readonly request: { readonly body: StreamSubjectAddition }; readonly answer: undefined }
  /** Leave a subject's events out */
  readonly "POST /v1/lifecycle/subjects:remove": { readonly request: { readonly body: StreamSubjectRemoval }; readonly answer: undefined }
  /** Have a verification event sent over a stream */
  readonly "POST /v1/lifecycle/verify": { readonly request: { readonly body: StreamVerification }; readonly answer: undefined }
  /** Object to a link of the caller's identity with another person's */
  readonly "POST /v1/link-requests/{link_request_id}/object": { readonly request: { readonly params: { readonly link_request_id: string }; readonly body?: Objection }; readonly answer: LinkRequest }
  /** Ask for two identities to become one; an operator decides, the other side may object */
  readonly "POST /v1/link-requests": { readonly request: { readonly body: LinkCreate }; readonly answer: LinkRequest }
  /** Ask for Access to a project; a Sponsor and an administrator decide */
  readonly "POST /v1/me/access-requests": { readonly request: { readonly body: RequestCreate }; readonly answer: AccessRequest }
  /** The proof that a decision of yours is in the transparency log */
  readonly "GET /v1/me/audit/{record_id}/proof": { readonly request: { readonly params: { readonly record_id: string } }; readonly answer: DecisionProof }
  /** What you did and tried, newest first */
  readonly "GET /v1/me/audit": { readonly request: { readonly query?: { readonly action?: string | undefined; readonly outcome?: "done" | "refused" | "failed" | undefined; readonly code?: string | undefined; readonly request_id?: string | undefined; readonly since?: string | undefined; readonly until?: string | undefined; readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: OwnAuditPage }
  /** What you sign in with; never a secret of it */
  readonly "GET /v1/me/authenticators": { readonly request: None; readonly answer: AuthenticatorList }
  /** Items of campaigns that wait for your answer, ascending by id */
  readonly "GET /v1/me/campaign-items": { readonly request: { readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: OwnCampaignItems }
  /** Complete a credential action with its proof */
  readonly "POST /v1/me/credential-actions/{intent_id}/complete": { readonly request: { readonly params: { readonly intent_id: string }; readonly headers?: { readonly "x-portal-binding"?: string | undefined }; readonly body: FinishAction }; readonly answer: FinishedAction }
  /** Which credential actions you could take now, and what sign-in each asks for */
  readonly "GET /v1/me/credential-actions": { readonly request: None; readonly answer: CredentialCapabilities }
  /** Start a credential action; its challenge can be answered for ten minutes */
  readonly "POST /v1/me/credential-actions": { readonly request: { readonly headers?: { readonly "x-portal-binding"?: string | undefined }; readonly body: StartAction }; readonly answer: StartedAction }
  /** Decisions about you, newest first, with the proof that each is in the transparency log */
  readonly "GET /v1/me/decisions": { readonly request: { readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: DecisionsAboutPerson }
  /** How fresh and strong your sign-in is, and what it is enough for */
  readonly "GET /v1/me/freshness": { readonly request: None; readonly answer: Freshness }
  /** Prove another own identity by a fresh access token of it */
  readonly "POST /v1/me/link-proofs": { readonly request: { readonly body: LinkProofCreate }; readonly answer: LinkProof }
  /** How you are told by mail of your requests and of what waits for your signature */
  readonly "GET /v1/me/notice-settings": { readonly request: None; readonly answer: NoticeSettings }
  /** Choose whether notices are gathered, mailed at once, or not mailed */
  readonly "PUT /v1/me/notice-settings": { readonly request: { readonly body: NoticeSettingsChange }; readonly answer: NoticeSettings }
  /** Ask for an institution; an operator decides */
  readonly "POST /v1/me/organization-requests": { readonly request: { readonly body: RequestFields }; readonly answer: OrganizationRequest }
  /** Withdraw an own request that is not decided yet; its review is closed */
  readonly "POST /v1/me/requests/{request_id}/withdraw": { readonly request: { readonly params: { readonly request_id: string }; readonly body: Reason }; readonly answer: OwnRequest }
  /** The caller's own requests of every kind, newest first, and links that the caller may object to */
  readonly "GET /v1/me/requests": { readonly request: { readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: OwnRequests }
  /** Where you are signed in, last seen first */
  readonly "GET /v1/me/sessions": { readonly request: None; readonly answer: SessionList }
  /** Ask for Access to a project until a time, or for a later end of it; a Sponsor and an administrator decide */
  readonly "POST /v1/me/temporary-access-requests": { readonly request: { readonly body: TemporaryAccessCreate }; readonly answer: AccessRequest }
  /** Your own account, with memberships and projects */
  readonly "GET /v1/me": { readonly request: None; readonly answer: OwnAccount }
  /** Read the notification preferences */
  readonly "GET /v1/notifications/preferences": { readonly request: None; readonly answer: { readonly preferences: NotificationPreferences } }
  /** Change the notification preferences */
  readonly "PUT /v1/notifications/preferences": { readonly request: { readonly body: { /** Category to channel to boolean; others stay as they are */ readonly preferences: { readonly [name: string]: { readonly [name: string]: boolean } } } }; readonly answer: { readonly preferences: NotificationPreferences } }
  /** Mark all notifications as read */
  readonly "POST /v1/notifications/read-all": { readonly request: None; readonly answer: { readonly updated: number; readonly unread: number } }
  /** Follow notifications live, from Last-Event-ID on */
  readonly "GET /v1/notifications/stream": { readonly request: None; readonly answer: string }
  /** Mark one notification as read */
  readonly "POST /v1/notifications/{notification_id}/read": { readonly request: { readonly params: { readonly notification_id: string } }; readonly answer: Notification }
  /** List notifications, newest first */
  readonly "GET /v1/notifications": { readonly request: { readonly query?: { readonly unread?: boolean | undefined; readonly category?: "alerts" | "sends" | "team" | "domains" | undefined; readonly limit?: number | undefined; readonly after_id?: string | undefined } }; readonly answer: NotificationList }
  /** Names of mail accounts, for operators; unknown ids are left out */
  readonly "GET /v1/operations/accounts": { readonly request: { readonly query: { readonly ids: string } }; readonly answer: AccountNames }
  /** The proof that a decision is in the transparency log, for operators and auditors */
  readonly "GET /v1/operations/audit/{record_id}/proof": { readonly request: { readonly params: { readonly record_id: string } }; readonly answer: DecisionProof }
  /** The audit of all accounts and people, newest first, for operators and auditors */
  readonly "GET /v1/operations/audit": { readonly request: { readonly query?: { readonly action?: string | undefined; readonly outcome?: "done" | "refused" | "failed" | undefined; readonly code?: string | undefined; readonly request_id?: string | undefined; readonly since?: string | undefined; readonly until?: string | undefined; readonly limit?: string | undefined; readonly after_id?: string | undefined; readonly actor?: string | undefined; readonly subject?: string | undefined } }; readonly answer: AuditPage }
  /** Count the dead letters that a replay of this span would send again, and send none */
  readonly "GET /v1/operations/dead-letters/replay": { readonly request: { readonly query: { readonly webhook_id: string; readonly since: string; readonly until?: string | undefined; readonly event_type?: EventType | undefined; readonly asked_at?: string | undefined } }; readonly answer: LettersReplayed }
  /** Send a webhook's dead letters of a span again, in the background, as an operator */
  readonly "POST /v1/operations/dead-letters/replay": { readonly request: { readonly body: DeadLetterReplay }; readonly answer: SpanReplayed }
  /** Send one dead letter again, as an operator */
  readonly "POST /v1/operations/dead-letters/{delivery_id}/replay": { readonly request: { readonly params: { readonly delivery_id: string }; readonly body: Reason }; readonly answer: LettersReplayed }
  /** Dead letters of all accounts, newest delivery first, for operators */
  readonly "GET /v1/operations/dead-letters": { readonly request: { readonly query?: { readonly account_id?: string | undefined; readonly webhook_id?: string | undefined; readonly event_type?: "email.sent" | "email.delivered" | "email.opened" | "email.clicked" | "email.bounced" | "email.failed" | "email.complained" | "email.unsubscribed" | undefined; readonly since?: string | undefined; readonly until?: string | undefined; readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: DeadLetterPage }
  /** Failed and ambiguous work, workers, drift and lag, for operators */
  readonly "GET /v1/operations/diagnostics": { readonly request: { readonly query?: { readonly lag_limit?: string | undefined; readonly after_lag?: LagCursor | undefined } }; readonly answer: Diagnostics }
  /** Checks configuration, database, keys and broker, and says what to do; for operators */
  readonly "GET /v1/operations/doctor": { readonly request: None; readonly answer: DoctorReport }
  /** Open a held installation, even where revocations may be lost, as an operator */
  readonly "POST /v1/operations/installation/open": { readonly request: { readonly body: Reason }; readonly answer: InstallationState }
  /** The epoch, and why the installation is held where it is; for operators */
  readonly "GET /v1/operations/installation": { readonly request: None; readonly answer: InstallationState }
  /** Discard a message that could not be taken in, as an operator */
  readonly "POST /v1/operations/intake-rejects/{reject_id}/discard": { readonly request: { readonly params: { readonly reject_id: string }; readonly body: Reason }; readonly answer: IntakeReject }
  /** Let a rejected message wait for its account for seven days more, as an operator */
  readonly "POST /v1/operations/intake-rejects/{reject_id}/retry": { readonly request: { readonly params: { readonly reject_id: string }; readonly body: Reason }; readonly answer: IntakeReject }
  /** Messages that could not be taken in, newest first, for operators */
  readonly "GET /v1/operations/intake-rejects": { readonly request: { readonly query?: { readonly state?: "rejected" | "waiting" | undefined; readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: IntakeRejectPage }
  /** Give a mail up for good, as an operator */
  readonly "POST /v1/operations/mails/{mail_id}/forget": { readonly request: { readonly params: { readonly mail_id: string }; readonly body: Reason }; readonly answer: OutgoingMail }
  /** Try to send a mail again at once, as an operator */
  readonly "POST /v1/operations/mails/{mail_id}/retry": { readonly request: { readonly params: { readonly mail_id: string }; readonly body: Reason }; readonly answer: OutgoingMail }
  /** Mails that have not been sent, newest first, with masked recipients, for operators */
  readonly "GET /v1/operations/mails": { readonly request: { readonly query?: { readonly state?: "failed" | "unknown" | "pending" | undefined; readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: OutgoingMailPage }
  /** End all holds of a person by identity providers, as an operator */
  readonly "POST /v1/operations/person-holds/{person_id}/release": { readonly request: { readonly params: { readonly person_id: string }; readonly body: Reason }; readonly answer: ReleasedPerson }
  /** People whom identity providers hold, those held last first, for operators */
  readonly "GET /v1/operations/person-holds": { readonly request: { readonly query?: { readonly limit?: string | undefined; readonly after_id?: HoldCursor | undefined } }; readonly answer: PersonHolds }
  /** Names of projects, for operators and auditors; unknown ids are left out */
  readonly "GET /v1/operations/projects": { readonly request: { readonly query: { readonly ids: string } }; readonly answer: ProjectNames }
  /** Every queue: what waits, what is due and since when, for operators */
  readonly "GET /v1/operations/queues": { readonly request: None; readonly answer: Queues }
  /** Hold, fail or release the rollout of a project, as an operator */
  readonly "POST /v1/operations/rollouts/{project_id}": { readonly request: { readonly params: { readonly project_id: string }; readonly body: RolloutDecision }; readonly answer: RolloutStanding }
  /** Projects whose rollout is held or has failed, ascending by id, for operators */
  readonly "GET /v1/operations/rollouts": { readonly request: { readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: HeldRollouts }
  /** Let projects switch to the announced signing key from now on, as an operator */
  readonly "POST /v1/operations/signing-keys/activate": { readonly request: { readonly body: KeyActivation }; readonly answer: SigningKeyRing }
  /** Begin a transition to the next signing key and tell every project, as an operator */
  readonly "POST /v1/operations/signing-keys/announce": { readonly request: { readonly body: KeyAnnouncement }; readonly answer: SigningKeyRing }
  /** Put the announced signing key into the key set now, as an operator */
  readonly "POST /v1/operations/signing-keys/publish": { readonly request: { readonly body: Reason }; readonly answer: SigningKeyRing }
  /** Take a stolen signing key out of use at once, as an operator */
  readonly "POST /v1/operations/signing-keys/{kid}/compromise": { readonly request: { readonly params: { readonly kid: string }; readonly body: Reason }; readonly answer: SigningKeyRing }
  /** End a signing key that has verified long enough, as an operator */
  readonly "POST /v1/operations/signing-keys/{kid}/retire": { readonly request: { readonly params: { readonly kid: string }; readonly body: Reason }; readonly answer: SigningKeyRing }
  /** The keys that sign lifecycle messages, and who a transition waits for; for operators */
  readonly "GET /v1/operations/signing-keys": { readonly request: None; readonly answer: SigningKeyRing }
  /** Follow queues, backlogs, dead letters and findings live, for operators */
  readonly "GET /v1/operations/stream": { readonly request: None; readonly answer: string }
  /** The broker's streams and how far their consumers are, for operators */
  readonly "GET /v1/operations/streams": { readonly request: None; readonly answer: BusReport }
  /** Follow the messages that pass on the bus, for operators */
  readonly "GET /v1/operations/tail": { readonly request: { readonly query?: { readonly subject?: string | undefined } }; readonly answer: string }
  /** Make up to 1,000 deliveries that wait for a webhook due now, as an operator */
  readonly "POST /v1/operations/webhooks/{webhook_id}/kick": { readonly request: { readonly params: { readonly webhook_id: string }; readonly body: Reason }; readonly answer: KickedDeliveries }
  /** Pause any account's webhook, so that the account cannot resume it, as an operator */
  readonly "POST /v1/operations/webhooks/{webhook_id}/pause": { readonly request: { readonly params: { readonly webhook_id: string }; readonly body: Reason }; readonly answer: OperatedWebhook }
  /** Resume a webhook that an operator or the program paused, as an operator */
  readonly "POST /v1/operations/webhooks/{webhook_id}/resume": { readonly request: { readonly params: { readonly webhook_id: string }; readonly body: Reason }; readonly answer: OperatedWebhook }
  /** The 20 webhooks with the most deliveries that wait, and those that an operator paused; for operators */
  readonly "GET /v1/operations/webhooks": { readonly request: { readonly query?: { readonly sort?: "backlog" | undefined } }; readonly answer: WebhookBacklogs }
  /** The state of the work that the caller can see */
  readonly "GET /v1/operations": { readonly request: None; readonly answer: OperationsSummary }
  /** Names of people whom you share an institution with; other ids are left out */
  readonly "GET /v1/people": { readonly request: { readonly query: { readonly ids: string } }; readonly answer: PersonNames }
  /** Make a person, as an operator or a directory service */
  readonly "POST /v1/people": { readonly request: { readonly body: PersonCreate }; readonly answer: CreatedPerson }
  /** Approve in a role that the caller holds; the last approval carries the request out */
  readonly "POST /v1/policies/reviews/{review_id}/approve": { readonly request: { readonly params: { readonly review_id: string }; readonly query?: { readonly dry_run?: boolean | undefined }; readonly body: Approval }; readonly answer: PolicyReview | undefined }
  /** Decline in a role in which the caller could approve */
  readonly "POST /v1/policies/reviews/{review_id}/decline": { readonly request: { readonly params: { readonly review_id: string }; readonly body: Approval }; readonly answer: PolicyReview }
  /** A review that the caller may act on, or has decided, and who may sign it */
  readonly "GET /v1/policies/reviews/{review_id}": { readonly request: { readonly params: { readonly review_id: string } }; readonly answer: PolicyReviewDetail }
  /** The reviews that the caller may act on, oldest first, or has decided, newest first */
  readonly "GET /v1/policies/reviews": { readonly request: { readonly query?: { readonly state?: "open" | "applied" | "declined" | "superseded" | "decided_by_me" | "signed_by_me" | undefined; readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: PolicyReviews }
  /** The project's lifecycle events, decoded, newest first, as an owner or an operator of its institution */
  readonly "GET /v1/projects/{project_id}/events": { readonly request: { readonly params: { readonly project_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: ProjectEvents }
  /** The project's launch proposals, newest first, as an owner, Sponsor, administrator or operator */
  readonly "GET /v1/projects/{project_id}/launch-proposals": { readonly request: { readonly params: { readonly project_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: ProjectLaunches }
  /** Propose to launch a project, as an active owner */
  readonly "POST /v1/projects/{project_id}/launch-proposals": { readonly request: { readonly params: { readonly project_id: string }; readonly body: LaunchCreate }; readonly answer: LaunchProposal }
  /** Approve a service grant, as an independent administrator */
  readonly "POST /v1/projects/{project_id}/lifecycle-service-grants/{grant_id}/approve": { readonly request: { readonly params: { readonly project_id: string; readonly grant_id: string }; readonly query?: { readonly dry_run?: boolean | undefined }; readonly body: LifecycleServiceApproval }; readonly answer: GrantRead | undefined }
  /** End a service grant at once; ending it again shows its present state */
  readonly "POST /v1/projects/{project_id}/lifecycle-service-grants/{grant_id}/revoke": { readonly request: { readonly params: { readonly project_id: string; readonly grant_id: string }; readonly body: Reason }; readonly answer: GrantRead }
  /** The project's service grants, oldest first */
  readonly "GET /v1/projects/{project_id}/lifecycle-service-grants": { readonly request: { readonly params: { readonly project_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: ReadonlyArray<GrantRead> }
  /** Propose that a service may read the project's lifecycle, as an owner */
  readonly "POST /v1/projects/{project_id}/lifecycle-service-grants": { readonly request: { readonly params: { readonly project_id: string }; readonly body: LifecycleServiceProposal }; readonly answer: GrantRead }
  /** What the product has committed, with its installed version and the chain's head */
  readonly "POST /v1/projects/{project_id}/lifecycle/acknowledgements": { readonly request: { readonly params: { readonly project_id: string }; readonly body: LifecycleCursorAcknowledgement }; readonly answer: LifecycleAcknowledged }
  /** Signed events in the order of positions, after a cursor */
  readonly "GET /v1/projects/{project_id}/lifecycle/events": { readonly request: { readonly params: { readonly project_id: string }; readonly query?: { readonly after?: string | undefined; readonly limit?: string | undefined; readonly wait?: string | undefined } }; readonly answer: LifecycleEvents }
  /** A piece of a large state's canonical JSON, for a day after the last snapshot that named it */
  readonly "GET /v1/projects/{project_id}/lifecycle/snapshot/parts/{digest}": { readonly request: { readonly params: { readonly project_id: string; readonly digest: string } }; readonly answer: Blob }
  /** The state after all events up to its cursor, signed, or the list of its parts */
  readonly "GET /v1/projects/{project_id}/lifecycle/snapshot": { readonly request: { readonly params: { readonly project_id: string } }; readonly answer: string }
  /** Diagnostics of one project */
  readonly "GET /v1/projects/{project_id}/operations/diagnostics": { readonly request: { readonly params: { readonly project_id: string }; readonly query?: { readonly lag_limit?: string | undefined; readonly after_lag?: LagCursor | undefined } }; readonly answer: Diagnostics }
  /** The project's owners, former ones included, by person, as an owner, Sponsor, administrator or operator */
  readonly "GET /v1/projects/{project_id}/owners": { readonly request: { readonly params: { readonly project_id: string }; readonly query?: { readonly limit?: string | undefined; readonly after_id?: string | undefined } }; readonly answer: ListedOwners }
  /** Make a person an owner or no owner, as an effective administrator */
  readonly "POST /v1/projects/{project_id}/owners": { readonly request: { readonly params: { readonly project_id: string }; readonly body: OwnerChange }; readonly answer: ProjectOwners }
  /** A project with its client, version, owners and launches, and why it is held */
  readonly "GET /v1/projects/{project_id}": { readonly request: { readonly params: { readonly project_id: string } }; readonly answer: Project }
  /** Follow the newest deliveries of all your webhooks live */
  readonly "GET /v1/webhook-deliveries/stream": { readonly request: None; readonly answer: string }
  /** End a waiting delivery without a further attempt; a replay may send it again */
  readonly "POST /v1/webhook-deliveries/{delivery_id}/cancel": { readonly request: { readonly params: { readonly delivery_id: string } }; readonly answer: { readonly id: string; readonly status: DeliveryStatus } }
  /** Send one delivery again, in a new cycle of attempts */
  readonly "POST /v1/webhook-deliveries/{delivery_id}/replay": { readonly request: { readonly params: { readonly delivery_id: string } }; readonly answer: { readonly id: string; readonly status: DeliveryStatus } }
  /** Make the next attempt of a waiting delivery now; it counts as one of the eight */
  readonly "POST /v1/webhook-deliveries/{delivery_id}/retry": { readonly request: { readonly params: { readonly delivery_id: string } }; readonly answer: { readonly id: string; readonly status: DeliveryStatus } }
  /** Read one delivery, found by its id alone, with the request that was sent */
  readonly "GET /v1/webhook-deliveries/{delivery_id}": { readonly request: { readonly params: { readonly delivery_id: string } }; readonly answer: WebhookDeliverySent }
  /** List the deliveries of all your webhooks, newest first */
  readonly "GET /v1/webhook-deliveries": { readonly request: { readonly query?: { readonly status?: "pending" | "retrying" | "delivered" | "dead_letter" | "cancelled" | undefined; readonly event_type?: "email.sent" | "email.delivered" | "email.opened" | "email.clicked" | "email.bounced" | "email.failed" | "email.complained" | "email.unsubscribed" | undefined; readonly webhook_id?: string | undefined; readonly response_status?: string | undefined; readonly email_id?: string | undefined; readonly event_id?: string | undefined; readonly since?: string | undefined; readonly until?: string | undefined; readonly limit?: number | undefined; readonly after_id?: string | undefined } }; readonly answer: WebhookDeliveryList }
  /** Count the attempts of each webhook by the hour, of the last 24 hours, with its newest delivery */
  readonly "GET /v1/webhook-stats/hours": { readonly request: None; readonly answer: DeliveryHours }
  /** Count the attempts of all your webhooks by minute; by default of the last 24 hours */
  readonly "GET /v1/webhook-stats": { readonly request: { readonly query?: { readonly since?: string | undefined; readonly until?: string | undefined } }; readonly answer: DeliveryStatistics }
  /** List webhooks, newest first */
  readonly "GET /v1/webhooks/": { readonly request: { readonly query?: { readonly include_paused?: boolean | undefined } }; readonly answer: ReadonlyArray<Webhook> }
  /** Create a webhook; its signing secret is in this answer */
  readonly "POST /v1/webhooks/": { readonly request: { readonly body: NewWebhook }; readonly answer: WebhookWithSecret }
  /** Read one delivery with its attempts */
  readonly "GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id}": { readonly request: { readonly params: { readonly webhook_id: string; readonly delivery_id: string } }; readonly answer: WebhookDeliveryDetails }
  /** List deliveries, newest first */
  readonly "GET /v1/webhooks/{webhook_id}/deliveries": { readonly request: { readonly params: { readonly webhook_id: string }; readonly query?: { readonly page?: number | undefined; readonly limit?: number | undefined; readonly status?: "pending" | "retrying" | "delivered" | "dead_letter" | "cancelled" | undefined } }; readonly answer: WebhookDeliveryPage }
  /** Count the deliveries that a replay of this span would send again, and send none */
  readonly "GET /v1/webhooks/{webhook_id}/replay": { readonly request: { readonly params: { readonly webhook_id: string }; readonly query: { readonly since: string; readonly until?: string | undefined; readonly status?: "dead_letter" | "delivered" | "missed" | undefined; readonly event_type?: EventType | undefined; readonly asked_at?: string | undefined } }; readonly answer: ReplayCount }
  /** Send again deliveries that ended in a span of time; by default dead letters */
  readonly "POST /v1/webhooks/{webhook_id}/replay": { readonly request: { readonly params: { readonly webhook_id: string }; readonly body: ReplayRequest }; readonly answer: { readonly replayed: number; readonly asked_at: Timestamp_1 } }
  /** Give a webhook a new secret; the old one signs beside it for a while */
  readonly "POST /v1/webhooks/{webhook_id}/rotate-secret": { readonly request: { readonly params: { readonly webhook_id: string }; readonly body?: SecretRotation }; readonly answer: WebhookWithSecret }
  /** Count the attempts of one webhook by minute; by default of the last 24 hours */
  readonly "GET /v1/webhooks/{webhook_id}/stats": { readonly request: { readonly params: { readonly webhook_id: string }; readonly query?: { readonly since?: string | undefined; readonly until?: string | undefined } }; readonly answer: DeliveryStatistics }
  /** Queue a sample event of a type of your choice, email.delivered by default */
  readonly "POST /v1/webhooks/{webhook_id}/test": { readonly request: { readonly params: { readonly webhook_id: string }; readonly body?: WebhookTestRequest }; readonly answer: { readonly queued: boolean; readonly url: string } }
  /** Delete a webhook; its waiting deliveries are cancelled */
  readonly "DELETE /v1/webhooks/{webhook_id}": { readonly request: { readonly params: { readonly webhook_id: string } }; readonly answer: undefined }
  /** Read one webhook, active or paused, without its secret */
  readonly "GET /v1/webhooks/{webhook_id}": { readonly request: { readonly params: { readonly webhook_id: string } }; readonly answer: WebhookDetails }
  /** Change, pause or resume a webhook */
  readonly "PATCH /v1/webhooks/{webhook_id}": { readonly request: { readonly params: { readonly webhook_id: string }; readonly body?: WebhookUpdate }; readonly answer: Webhook }
  /** List the workspaces that you belong to, oldest first */
  readonly "GET /v1/workspaces": { readonly request: { readonly query?: { readonly limit?: number | undefined; readonly after_id?: string | undefined } }; readonly answer: WorkspacePage }
}
