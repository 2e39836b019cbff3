/** The identity API's services and handlers. */
import { Layer } from "effect"
import { AccessReviews } from "../../services/access/AccessReviews.ts"
import { AccessVersions } from "../../services/access/AccessVersions.ts"
import { ServiceGrants } from "../../services/access/ServiceGrants.ts"
import { Enrollments } from "../../services/decisions/Enrollments.ts"
import { Policies } from "../../services/decisions/Policies.ts"
import { PolicyReviews } from "../../services/requests/PolicyReviews.ts"
import { Requests } from "../../services/decisions/Requests.ts"
import { Positions } from "../../services/lifecycle/Positions.ts"
import { Authenticators } from "../../services/people/Authenticators.ts"
import { relyingPartyAt } from "../../services/people/Authenticators/Webauthn.ts"
import { CredentialActions } from "../../services/people/CredentialActions.ts"
import { Links } from "../../services/links/Links.ts"
import { NewPeople } from "../../services/people/NewPeople.ts"
import { People } from "../../services/people/People.ts"
import { PersonNews } from "../../services/people/PersonNews.ts"
import { Roles } from "../../services/people/Roles.ts"
import { Sessions } from "../../services/people/Sessions.ts"
import { Tellings } from "../../services/people/Tellings.ts"
import { Idempotency } from "../../services/platform/security/Idempotency.ts"
import { ClientDrift } from "../../services/projects/ClientDrift.ts"
import { embedded } from "../../services/projects/IdentityProvider/EmbeddedProvider.ts"
import { registration } from "../../services/projects/IdentityProvider/ClientRegistration.ts"
import { Operations } from "../../services/projects/Operations.ts"
import { Projects } from "../../services/projects/Projects.ts"
import { ProviderJobs } from "../../services/projects/ProviderJobs.ts"
import { ReviewedJobs } from "../../services/projects/ReviewedJobs.ts"
import type { AppConfig } from "../AppConfig.ts"
import { accessReviews } from "../http/handlers/AccessReviews.ts"
import { enrollments } from "../http/handlers/Enrollments.ts"
import { me } from "../http/handlers/Me.ts"
import { operations } from "../http/handlers/Operations.ts"
import { ApprovalMaxAge } from "../http/auth/Person.ts"
import { policies } from "../http/handlers/Policies.ts"
import { requests } from "../http/handlers/Requests.ts"
import { serviceGrants } from "../http/handlers/ServiceGrants.ts"
import { websites } from "../http/handlers/Websites.ts"

const provider = ({ identityProvider }: AppConfig) =>
  identityProvider === null ? embedded : registration(identityProvider)

/** Services of a person's own account. Passkeys are made for PORTAL_URL, else for the origin of PUBLIC_URL. */
const personal = ({ portalUrl }: AppConfig, publicUrl: string) =>
  CredentialActions.layer(relyingPartyAt(new URL(portalUrl ?? publicUrl))).pipe(
    Layer.merge(People.layer),
    Layer.provideMerge(Layer.mergeAll(Authenticators.layer, Sessions.layer, Tellings.layer())),
  )

/** Requests of people, and the policy reviews that decide them. */
const asking = ({ directoryWriterClients: writers }: AppConfig) =>
  Policies.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(Requests.layer, Enrollments.layer, Projects.layer, Links.layer, NewPeople.layer({ writers })),
    ),
    Layer.provide(PolicyReviews.layer),
  )

/** The services of the identity API. `embeddedIssuer` is the URL of DEMO's issuer. */
export const identityServices = (config: AppConfig, embeddedIssuer: string) =>
  Layer.mergeAll(
    AccessReviews.layer,
    asking(config),
    Operations.layer,
    personal(config, embeddedIssuer),
    ReviewedJobs.layer,
    ClientDrift.layer,
    Idempotency.layer,
  ).pipe(
    Layer.provideMerge(ServiceGrants.layer({
      issuers: config.demo ? [embeddedIssuer] : config.lifecycleIssuers.map(({ issuer }) => issuer),
      everybody: config.demo,
    })),
    Layer.provideMerge(Layer.mergeAll(AccessVersions.layer, PersonNews.layer(), ProviderJobs.layer)),
    Layer.provideMerge(Layer.mergeAll(Positions.layer, Roles.layer, provider(config))),
  )

/** Handlers of the identity API's groups. */
export const identityHandlers = ({ managementApprovalMaxAge: millis }: AppConfig) => {
  const maxAge = millis === null ? null : Math.floor(millis / 1_000)
  return Layer.mergeAll(
    accessReviews,
    me,
    serviceGrants,
    operations,
    requests,
    enrollments,
    websites,
    policies,
  ).pipe(
    Layer.provide(Layer.succeed(ApprovalMaxAge, maxAge)),
  )
}
