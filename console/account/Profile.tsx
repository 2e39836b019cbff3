/** The person as the directory has them: names, identities, memberships and projects. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { CopyButton } from "../parts/Copy.tsx"
import { Badge } from "../parts/Badge.tsx"
import { LinkIdentity } from "./LinkIdentity.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"

type Account = AnswerOf<"me">

const Emailed = ({ email, email_verified: verified }: Account): JSX.Element =>
  email === null ? <span class="note">none</span> : (
    <>
      {email} <Badge tone={verified ? "good" : "warn"}>{verified ? "verified" : "not verified"}</Badge>
    </>
  )

export const Profile = ({ of }: { readonly of: Account }): JSX.Element => (
  <dl>
    <div>
      <dt>Name</dt>
      <dd>{of.display_name ?? <span class="note">none</span>}</dd>
    </div>
    <div>
      <dt>Email</dt>
      <dd>
        <Emailed {...of} />
      </dd>
    </div>
    <div>
      <dt>Person</dt>
      <dd>
        <code>{of.person_id}</code> <CopyButton text={of.person_id} label="Copy id" />
      </dd>
    </div>
    <div>
      <dt>Known since</dt>
      <dd>
        <When at={of.created_at} exact />
      </dd>
    </div>
    <div>
      <dt>Institutions</dt>
      <dd>
        {of.memberships.map(({ institution_id, institution_name, role, state }) =>
          `${institution_name ?? institution_id} (${role}${state === "active" ? "" : `, ${state}`})`
        ).join(", ") || <span class="note">none</span>}
      </dd>
    </div>
    <div>
      <dt>Projects</dt>
      <dd>
        {of.projects.length === 0
          ? <span class="note">none</span>
          : of.projects.map(({ name, project_id, relation }) => (
            <div key={`${project_id} ${relation}`}>
              <a href={`/console/projects/${project_id}`}>{name ?? project_id}</a> ({relation})
            </div>
          ))}
      </dd>
    </div>
  </dl>
)

/** The identities that sign this person in: the first one, and the ones that were linked to it. */
export const Identities = ({ of }: { readonly of: Account }): JSX.Element => {
  const { created_at: linked_at, issuer, linked_identities: linked, subject } = of
  const all = [
    { issuer, subject, linked_at },
    ...linked.filter((one) => one.issuer !== issuer || one.subject !== subject),
  ]
  return (
    <section aria-labelledby="identities">
      <h2 id="identities">Linked identities</h2>
      <Table
        caption="Identities that sign you in, the first one first"
        rows={all}
        keyOf={({ issuer, subject }) => `${issuer} ${subject}`}
        empty="There is none."
        columns={[
          { head: "Issuer", cell: ({ issuer }) => issuer },
          { head: "Subject", cell: ({ subject }) => <code>{subject}</code> },
          { head: "Since", cell: ({ linked_at }) => <When at={linked_at} /> },
        ]}
      />
      <LinkIdentity />
    </section>
  )
}
