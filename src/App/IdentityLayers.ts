/** The identity API's services and handlers. */
import { Layer } from "effect"
import { AccessConfirmations } from "../../services/access/AccessConfirmations.ts"
import { AccessEnds } from "../../services/access/AccessEnds.ts"
import { EvidencePacks } from "../../services/access/EvidencePacks.ts"
import { AccessReviews } from "../../services/access/AccessReviews.ts"
import { AccessVersions } from "../../services/access/AccessVersions.ts"
import { OverdueReviews } from "../../services/access/OverdueReviews.ts"
import { ServiceGrants } from "../../services/access/ServiceGrants.ts"
import { Campaigns } from "../../services/decisions/Campaigns.ts"
import { Enrollments } from "../../services/decisions/Enrollments.ts"
import { NoticeMails } from "../../services/decisions/NoticeMails.ts"
import { NoticeSettings } from "../../services/decisions/NoticeSettings.ts"
import { PolicyDecisions } from "../../services/decisions/PolicyDecisions.ts"
import { OperatorAccountNames } from "../../services/operations/OperatorAccountNames.ts"
import { OperatorProjectNames } from "../../services/operations/OperatorProjectNames.ts"
import { OperatorAudit } from "../../services/operations/OperatorAudit.ts"
import { BusStatus } from "../../services/operations/BusStatus.ts"
import { OperatorInstallation } from "../../services/operations/OperatorInstallation.ts"
import { OperatorKeys } from "../../services/operations/OperatorKeys.ts"
import { OperatorHolds } from "../../services/operations/OperatorHolds.ts"
import { OperatorMails } from "../../services/operations/OperatorMails.ts"
import { MailUpkeep } from "../../services/platform/mail/MailUpkeep.ts"
import { OperatorRejects } from "../../services/operations/OperatorRejects.ts"
import { RejectUpkeep } from "../../services/platform/messaging/RejectUpkeep.ts"
import { OperatorRollouts } from "../../services/operations/OperatorRollouts.ts"
import { Queues } from "../../services/operations/Queues.ts"
import { AuditLog } from "../../services/platform/observability/AuditLog.ts"
import { PolicyReviews } from "../../services/requests/PolicyReviews.ts"
import { Requests } from "../../services/decisions/Requests.ts"
import { EventLog } from "../../services/lifecycle/EventLog.ts"
import { KeyRotation } from "../../services/lifecycle/KeyRotation.ts"
import { SigningKeys } from "../../services/lifecycle/SigningKeys.ts"
import { Assertions } from "../../services/people/Assertions.ts"
import { Authenticators } from "../../services/people/Authenticators.ts"
import { relyingPartyAt } from "../../services/people/Authenticators/Webauthn.ts"
import { oneFactorIssuers } from "../../services/people/ConfiguredTokenIssuer.ts"
import { CredentialActions } from "../../services/people/CredentialActions.ts"
import { Institutions } from "../../services/access/Institutions.ts"
import { Links } from "../../services/links/Links.ts"
import { NewPeople } from "../../services/people/NewPeople.ts"
import { People } from "../../services/people/People.ts"
import { PersonNames } from "../../services/people/PersonNames.ts"
import { PersonEventFanout } from "../../services/people/PersonEventFanout.ts"
import { Roles } from "../../services/people/Roles.ts"
import { Sessions } from "../../services/people/Sessions.ts"
import { SecurityEventFanout } from "../../services/people/SecurityEventFanout.ts"
import { Idempotency } from "../../services/platform/security/Idempotency.ts"
import { ClientDrift } from "../../services/projects/ClientDrift.ts"
import { embedded } from "../../services/projects/IdentityProvider/EmbeddedProvider.ts"
import { registration } from "../../services/projects/IdentityProvider/ClientRegistration.ts"
import { Operations } from "../../services/projects/Operations.ts"
import { Projects } from "../../services/projects/Projects.ts"
import { ProviderJobs } from "../../services/projects/ProviderJobs.ts"
import { Rollouts } from "../../services/projects/Rollouts.ts"
import { ReviewedJobs } from "../../services/projects/ReviewedJobs.ts"
import type { AppConfig } from "../AppConfig.ts"
import { accessReviews } from "../http/handlers/AccessReviewsHandlers.ts"
import { assertions, verifying } from "../http/handlers/AssertionsHandlers.ts"
import { campaigns } from "../http/handlers/CampaignsHandlers.ts"
import { enrollments } from "../http/handlers/EnrollmentsHandlers.ts"
import { institutions } from "../http/handlers/InstitutionsHandlers.ts"
import { me } from "../http/handlers/MeHandlers.ts"
import { operations } from "../http/handlers/OperationsHandlers.ts"
import { operator } from "../http/handlers/OperatorHandlers.ts"
import { ApprovalMaxAge } from "../http/auth/PersonAuth.ts"
import { periodicReviews } from "../http/handlers/PeriodicReviewsHandlers.ts"
import { policies } from "../http/handlers/PoliciesHandlers.ts"
import { requests } from "../http/handlers/RequestsHandlers.ts"
import { rollouts } from "../http/handlers/RolloutsHandlers.ts"
import { serviceGrants } from "../http/handlers/ServiceGrantsHandlers.ts"
import { signingKeys } from "../http/handlers/SigningKeysHandlers.ts"
import { upkeep } from "../http/handlers/UpkeepHandlers.ts"
import { websites } from "../http/handlers/WebsitesHandlers.ts"

const provider = ({ identityProvider }: AppConfig) =>
  identityProvider === null ? embedded : registration(identityProvider)

/** Passkeys are made for PORTAL_URL, else for the origin of PUBLIC_URL. */
export const relyingPartyOf = ({ portalUrl }: AppConfig, publicUrl: URL) =>
  relyingPartyAt(new URL(portalUrl ?? publicUrl), publicUrl)

/** Services of a person's own account. */
const personal = (config: AppConfig, publicUrl: string) =>
  CredentialActions.layer(
    relyingPartyOf(config, new URL(publicUrl)),
    oneFactorIssuers(config.managementIssuers, config.assertionClients),
  ).pipe(
    Layer.merge(People.layer),
    Layer.merge(Assertions.layer(relyingPartyOf(config, new URL(publicUrl)))),
    Layer.provideMerge(Layer.mergeAll(Authenticators.layer, Sessions.layer, SecurityEventFanout.layer())),
  )

/** Requests of people, and the policy reviews that decide them; campaigns, whose answers may be such requests. */
const asking = ({ directoryWriterClients: writers }: AppConfig) =>
  Layer.mergeAll(PolicyDecisions.layer, Campaigns.layer).pipe(
    Layer.provideMerge(
      Layer.mergeAll(Requests.layer, Enrollments.layer, Projects.layer, Links.layer, NewPeople.layer({ writers })),
    ),
    Layer.provide(PolicyReviews.layer),
  )

/** The services for operators only. */
const operating = ({ keyTransitionDeadline: deadlineMillis }: AppConfig) =>
  Layer.mergeAll(
    Queues.layer,
    BusStatus.layer,
    OperatorInstallation.layer,
    OperatorHolds.layer,
    OperatorRollouts.layer.pipe(Layer.provide(Rollouts.layer), Layer.provide(PolicyReviews.layer)),
    OperatorMails.layer.pipe(Layer.provide(MailUpkeep.layer)),
    OperatorRejects.layer.pipe(Layer.provide(RejectUpkeep.layer)),
    OperatorAccountNames.layer,
    OperatorProjectNames.layer,
    OperatorAudit.layer.pipe(Layer.provide(AuditLog.layer)),
    OperatorKeys.layer.pipe(Layer.provide(KeyRotation.layer({ deadlineMillis })), Layer.provide(SigningKeys.layer)),
  )

/** The services of the identity API. `embeddedIssuer` is the URL of DEMO's issuer. */
export const identityServices = (config: AppConfig, embeddedIssuer: string) =>
  Layer.mergeAll(
    AccessReviews.layer,
    AccessEnds.layer,
    EvidencePacks.layer(new URL(embeddedIssuer)).pipe(Layer.provide(SigningKeys.layer)),
    AccessConfirmations.layer,
    OverdueReviews.layer,
    Institutions.layer,
    PersonNames.layer,
    asking(config),
    Operations.layer,
    operating(config),
    personal(config, embeddedIssuer),
    ReviewedJobs.layer,
    ClientDrift.layer,
    Idempotency.layer,
    NoticeMails.layer,
    NoticeSettings.layer,
  ).pipe(
    Layer.provideMerge(ServiceGrants.layer({
      issuers: config.demo ? [embeddedIssuer] : config.lifecycleIssuers.map(({ issuer }) => issuer),
      anyIssuer: config.demo,
    })),
    Layer.provideMerge(Layer.mergeAll(AccessVersions.layer, PersonEventFanout.layer(), ProviderJobs.layer)),
    Layer.provideMerge(Layer.mergeAll(EventLog.layer, Roles.layer, provider(config))),
  )

/** Handlers of the identity API's groups. */
export const identityHandlers = (
  { assertionClients: clients, assertionRate: rate, managementApprovalMaxAge: millis }: AppConfig,
) => {
  const maxAge = millis === null ? null : Math.floor(millis / 1_000)
  return Layer.mergeAll(
    accessReviews,
    me,
    serviceGrants,
    operations,
    operator,
    signingKeys,
    upkeep,
    rollouts,
    requests,
    enrollments,
    institutions,
    periodicReviews,
    campaigns,
    websites,
    policies,
    Layer.provide(assertions, verifying({ clients, rate })),
  ).pipe(
    Layer.provide(Layer.succeed(ApprovalMaxAge, maxAge)),
  )
}
