/**
 * The table of screens: one line each. `path` with `:parameters`, `menu` for a line in the navigation, `sees` for who
 * sees it, `load` for its file. The first line that a visitor sees and whose `home` says so is the page that they land on.
 */
import type { ComponentType } from "preact"
import type { Params } from "./Location.ts"
import {
  account,
  actor,
  anyone,
  auditReader,
  operator,
  ownerOnly,
  person,
  platformAdmin,
  reviewReader,
  type Sees,
  type Session,
  signer,
  transferring,
} from "./Visitor.ts"

export interface Screen {
  readonly path: string
  readonly sees: Sees
  readonly load: () => Promise<{ readonly default: ComponentType<{ readonly params: Params }> }>
  /** The heading in the navigation under which the screen stands. */
  readonly part: Part
  /** Its words in the navigation; a screen without is reached from another one. */
  readonly menu?: string
  readonly home?: Sees
  /** The address of that first page, where the path has parameters. */
  readonly homeAt?: (one: Session) => string
  /** Whether it is shown in a frame of another page as well. */
  readonly embedded?: true
}

export const parts = ["Operations", "Decisions", "Mail", "You"] as const
export type Part = (typeof parts)[number]

export const screens: ReadonlyArray<Screen> = [
  // Operations
  {
    part: "Operations",
    menu: "Findings",
    path: "/console/operations/findings",
    sees: operator,
    home: operator,
    load: () => import("./screens/Findings.tsx"),
  },
  {
    part: "Operations",
    menu: "Queues",
    path: "/console/operations/queues",
    sees: operator,
    load: () => import("./screens/Queues.tsx"),
  },
  {
    part: "Operations",
    menu: "Dead letters",
    path: "/console/operations/dead-letters",
    sees: operator,
    load: () => import("./screens/DeadLettersOfAll.tsx"),
  },
  {
    part: "Operations",
    menu: "Mails",
    path: "/console/operations/mails",
    sees: operator,
    load: () => import("./screens/Mails.tsx"),
  },
  {
    part: "Operations",
    menu: "Rejected messages",
    path: "/console/operations/rejects",
    sees: operator,
    load: () => import("./screens/IntakeRejects.tsx"),
  },
  {
    part: "Operations",
    menu: "Bus",
    path: "/console/operations/bus",
    sees: operator,
    load: () => import("./screens/Bus.tsx"),
  },
  {
    part: "Operations",
    menu: "Consumers",
    path: "/console/operations/consumers",
    sees: operator,
    load: () => import("./screens/Consumers.tsx"),
  },
  {
    part: "Operations",
    menu: "Jobs",
    path: "/console/operations/jobs",
    sees: operator,
    load: () => import("./screens/Jobs.tsx"),
  },
  {
    part: "Operations",
    menu: "Installation",
    path: "/console/operations/installation",
    sees: operator,
    load: () => import("./screens/Installation.tsx"),
  },
  {
    part: "Operations",
    menu: "Rollouts",
    path: "/console/operations/rollouts",
    sees: operator,
    load: () => import("./screens/Rollouts.tsx"),
  },
  {
    part: "Operations",
    menu: "Held people",
    path: "/console/operations/held-people",
    sees: operator,
    load: () => import("./screens/HeldPeople.tsx"),
  },
  {
    part: "Operations",
    menu: "Signing keys",
    path: "/console/operations/signing-keys",
    sees: operator,
    load: () => import("./screens/SigningKeys.tsx"),
  },
  {
    part: "Operations",
    menu: "Audit",
    path: "/console/operations/audit",
    sees: auditReader,
    home: auditReader,
    load: () => import("./screens/Audit.tsx"),
  },
  // Decisions
  {
    part: "Decisions",
    menu: "To decide",
    path: "/console/decide",
    sees: actor,
    home: signer,
    load: () => import("./screens/Decide.tsx"),
  },
  {
    part: "Decisions",
    path: "/console/decide/:review_id",
    sees: actor,
    load: () => import("./screens/PolicyReview.tsx"),
  },
  {
    part: "Decisions",
    menu: "Access reviews",
    path: "/console/reviews",
    sees: reviewReader,
    load: () => import("./screens/AccessReviews.tsx"),
  },
  {
    part: "Decisions",
    menu: "Institutions",
    path: "/console/institutions",
    sees: person,
    load: () => import("./screens/Institutions.tsx"),
  },
  {
    part: "Decisions",
    path: "/console/institutions/:institution_id",
    sees: person,
    load: () => import("./screens/Institution.tsx"),
  },
  {
    part: "Decisions",
    path: "/console/institutions/:institution_id/access/:access_id",
    sees: person,
    load: () => import("./screens/AccessExplanation.tsx"),
  },
  {
    part: "Decisions",
    path: "/console/institutions/:institution_id/reviews/:review_id",
    sees: person,
    load: () => import("./screens/AccessReview.tsx"),
  },
  {
    part: "Decisions",
    path: "/console/institutions/:institution_id/campaigns",
    sees: person,
    load: () => import("./screens/Campaigns.tsx"),
  },
  {
    part: "Decisions",
    path: "/console/institutions/:institution_id/campaigns/:campaign_id",
    sees: person,
    load: () => import("./screens/Campaign.tsx"),
  },
  {
    part: "Decisions",
    path: "/console/projects/:project_id",
    sees: person,
    home: ownerOnly,
    homeAt: ({ projects }) => `/console/projects/${encodeURIComponent(projects[0]!.project_id)}`,
    load: () => import("./screens/Project.tsx"),
  },
  {
    part: "Decisions",
    menu: "My requests",
    path: "/console/requests",
    sees: actor,
    home: actor,
    load: () => import("./screens/Requests.tsx"),
  },
  // Mail
  {
    part: "Mail",
    menu: "Move a domain",
    path: "/console/move-domain",
    sees: platformAdmin,
    home: platformAdmin,
    load: () => import("./screens/MoveDomain.tsx"),
  },
  {
    part: "Mail",
    menu: "Overview",
    path: "/console/overview",
    sees: account,
    home: account,
    load: () => import("./screens/Overview.tsx"),
  },
  {
    part: "Mail",
    menu: "Webhooks",
    path: "/console/webhooks",
    sees: account,
    embedded: true,
    load: () => import("./screens/Webhooks.tsx"),
  },
  {
    part: "Mail",
    path: "/console/webhooks/:webhook_id",
    sees: account,
    embedded: true,
    load: () => import("./screens/Webhook.tsx"),
  },
  {
    part: "Mail",
    menu: "Deliveries",
    path: "/console/deliveries",
    sees: account,
    embedded: true,
    load: () => import("./screens/Deliveries.tsx"),
  },
  {
    part: "Mail",
    path: "/console/deliveries/:delivery_id",
    sees: account,
    embedded: true,
    load: () => import("./screens/Delivery.tsx"),
  },
  {
    part: "Mail",
    menu: "Event types",
    path: "/console/event-types",
    sees: account,
    embedded: true,
    load: () => import("./screens/EventCatalogue.tsx"),
  },
  {
    part: "Mail",
    menu: "API keys",
    path: "/console/api-keys",
    sees: account,
    load: () => import("./screens/ApiKeys.tsx"),
  },
  {
    part: "Mail",
    menu: "Notifications",
    path: "/console/notifications",
    sees: account,
    load: () => import("./screens/Notifications.tsx"),
  },
  {
    part: "Mail",
    menu: "Domains",
    path: "/console/domains",
    sees: account,
    load: () => import("./screens/Domains.tsx"),
  },
  {
    part: "Mail",
    menu: "Transfers",
    path: "/console/transfers",
    sees: transferring,
    load: () => import("./screens/Transfers.tsx"),
  },
  {
    part: "Mail",
    path: "/console/transfers/:transfer_id",
    sees: transferring,
    load: () => import("./screens/Transfer.tsx"),
  },
  // You
  {
    part: "You",
    menu: "My account",
    path: "/console/account",
    sees: person,
    load: () => import("./screens/Account.tsx"),
  },
  {
    part: "You",
    menu: "My activity",
    path: "/console/activity",
    sees: person,
    load: () => import("./screens/Activity.tsx"),
  },
  {
    part: "You",
    menu: "API reference",
    path: "/console/reference",
    sees: anyone,
    load: () => import("./screens/Reference.tsx"),
  },
  {
    part: "You",
    menu: "This session",
    path: "/console/welcome",
    sees: anyone,
    home: anyone,
    load: () => import("./screens/Welcome.tsx"),
  },
]
