/**
 * The identity half of the demo directory: institution Fern with its sponsor and two administrators, an operator, an
 * auditor, and a project that one person may use. The issuer is a name that no server can have: PUBLIC_URL may change with the port,
 * and these people must keep their identities. With DEMO the embedded issuer's key is accepted for it.
 */

const uuid = (n: number) => `0199c0de-0000-7000-8000-${String(n).padStart(12, "0")}`

/** Ids of the demo, the same in every installation. */
export const demoIdentityIds = {
  sam: uuid(41),
  ada: uuid(42),
  abe: uuid(43),
  oz: uuid(44),
  pat: uuid(45),
  ida: uuid(46),
  fern: uuid(51),
  samMembership: uuid(61),
  adaMembership: uuid(62),
  abeMembership: uuid(63),
  fernPortal: uuid(71),
  fernPortalOwner: uuid(81),
  fernPortalLink: uuid(82),
  patAccess: uuid(91),
} as const

/** The issuer of the demo people's identities. */
export const demoIssuer = "https://demo.bailiwick.example"

const since = "2025-01-01T00:00:00.000Z"
const website = "https://portal.fern.example"

const names = { sam: "Sam", ada: "Ada", abe: "Abe", oz: "Oz", pat: "Pat", ida: "Ida" } as const
type Who = keyof typeof names
const allNames = Object.keys(names) as ReadonlyArray<Who>

const membership = (id: string, who: Who, role: string) => ({
  kind: "institution_membership",
  id,
  institution_id: demoIdentityIds.fern,
  person_id: demoIdentityIds[who],
  role,
  state: "active",
  accepted_at: since,
})

/** The demo's people, active. */
export const demoPeople = allNames.map((who) => ({
  kind: "person",
  id: demoIdentityIds[who],
  issuer: demoIssuer,
  subject: who,
  display_name: names[who],
  email: `${who}@fern.example`,
  email_verified: true,
  operator: who === "oz",
  auditor: who === "ida",
  status: "active",
}))

/** The demo's lines, in order, without their versions. */
export const demoIdentityLines = [
  ...demoPeople,
  {
    kind: "institution",
    id: demoIdentityIds.fern,
    name: "Fern",
    verified_domains: ["fern.example"],
    status: "active",
  },
  membership(demoIdentityIds.samMembership, "sam", "sponsor"),
  membership(demoIdentityIds.adaMembership, "ada", "administrator"),
  membership(demoIdentityIds.abeMembership, "abe", "administrator"),
  {
    kind: "project",
    id: demoIdentityIds.fernPortal,
    institution_id: demoIdentityIds.fern,
    name: "Fern Portal",
    website,
    environment: "production",
    connector_kind: "standard_oidc",
    redirect_uris: [`${website}/callback`],
    state: "launched",
  },
  // The version that examples/product reports.
  {
    kind: "project_link",
    id: demoIdentityIds.fernPortalLink,
    project_id: demoIdentityIds.fernPortal,
    installed_version: "1.0.0",
  },
  {
    kind: "project_owner",
    id: demoIdentityIds.fernPortalOwner,
    project_id: demoIdentityIds.fernPortal,
    person_id: demoIdentityIds.sam,
  },
  {
    kind: "access",
    id: demoIdentityIds.patAccess,
    institution_id: demoIdentityIds.fern,
    project_id: demoIdentityIds.fernPortal,
    person_id: demoIdentityIds.pat,
    role: "user",
    state: "active",
  },
]

/** The identity part of `demo.json`. `cli token --person ID` makes a token for a person. */
export const demoIdentityFile = {
  institution: { id: demoIdentityIds.fern, name: "Fern" },
  project: { id: demoIdentityIds.fernPortal, name: "Fern Portal", website },
  access: { id: demoIdentityIds.patAccess, person_id: demoIdentityIds.pat },
  people: Object.fromEntries(
    demoPeople.map(({ auditor, email, id, issuer, operator, subject }) =>
      [
        subject,
        { id, issuer, subject, email, ...(operator ? { operator } : {}), ...(auditor ? { auditor } : {}) },
      ] as const
    ),
  ),
}
