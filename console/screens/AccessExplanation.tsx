/** Why a person has, or had, an Access: what keeps it from being in effect, who decided, and what products know. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import type { Params } from "../Location.ts"
import { useNames } from "../Names.ts"
import { Badge } from "../parts/Badge.tsx"
import { CopyButton } from "../parts/Copy.tsx"
import { EvidenceDownload } from "../parts/EvidenceDownload.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Page } from "../parts/Page.tsx"
import { ShortenAccess } from "../parts/ShortenAccess.tsx"
import { acknowledged, decided, delivered, effective, StateBadge } from "../parts/StateBadge.tsx"
import { Table } from "../parts/Table.tsx"
import { When } from "../parts/When.tsx"
import { ProjectName } from "../parts/ProjectName.tsx"
import { useProjectNames } from "../ProjectNames.ts"
import { useResource } from "../Resource.ts"
import { auditing, rolesIn } from "../Visitor.ts"

type Explanation = AnswerOf<"explainAccess">
type Name = (id: string) => string

const blocks: Readonly<Record<Explanation["effective"]["blocked_by"][number], string>> = {
  access_revoked: "it was revoked",
  moved_to_another_institution: "it belongs to another institution now",
  person_not_active: "the person is not active",
  project_withdrawn: "the project is withdrawn",
}

const peopleOf = (
  { confirmations, ends, person_id, request, reviews, versions }: Explanation,
): ReadonlyArray<string> => [
  person_id,
  ...confirmations.map((one) => one.person_id),
  ...ends.flatMap(({ approved_by, made_by }) => [...approved_by, made_by]),
  ...(request === null ? [] : [request.person_id, ...request.approvals.map((one) => one.person_id)]),
  ...versions.flatMap(({ approved_by, made_by }) => [...approved_by, ...(made_by === null ? [] : [made_by])]),
  ...reviews.flatMap(({ approved_by, proposed_by, revoked_by }) =>
    [proposed_by, approved_by, revoked_by].filter((id) => id !== null)
  ),
]

const named = (ids: ReadonlyArray<string>, names: Name): string => ids.map(names).join(" and ")

const InEffect = ({ of }: { readonly of: Explanation["effective"] }): JSX.Element => (
  <p>
    <StateBadge of={of.state} states={effective} />
    {of.blocked_by.length === 0 ? null : ` because ${of.blocked_by.map((one) => blocks[one]).join(", and ")}`}
    {of.drift ? <Badge tone="bad">the product's state differs</Badge> : null}
  </p>
)

const Asked = ({ names, of }: { readonly of: Explanation["request"]; readonly names: Name }): JSX.Element => (
  <section aria-labelledby="asked">
    <h2 id="asked">Who asked, and who signed</h2>
    {of === null ? <p class="note">No request was made here: the directory granted this Access.</p> : (
      <ol class="steps">
        <li class="past">
          <strong>{names(of.person_id)}</strong> asked, <When at={of.requested_at} exact />
          <div class="note">“{of.reason}”</div>
        </li>
        {of.approvals.map(({ approved_at, independent_of, person_id, reason, role, stands_in }) => (
          <li key={role} class="past">
            <strong>{names(person_id)}</strong> signed as {role}
            {stands_in ? ", as an operator in an administrator's place" : ""}, <When at={approved_at} exact />
            <div class="note">
              “{reason}”, independent of {named(independent_of, names)}
            </div>
          </li>
        ))}
      </ol>
    )}
  </section>
)

const Versions = ({ names, of, projects }: {
  readonly of: Explanation["versions"]
  readonly names: Name
  readonly projects: Name
}): JSX.Element => (
  <section aria-labelledby="versions">
    <h2 id="versions">Versions</h2>
    <Table
      caption="Versions of the Access, newest first"
      rows={of}
      keyOf={({ access_version }) => String(access_version)}
      empty="There is no version."
      columns={[
        { head: "Version", cell: ({ access_version }) => access_version },
        { head: "Since", cell: ({ created_at }) => <When at={created_at} exact /> },
        { head: "State", cell: ({ state }) => <Badge tone={state === "active" ? "good" : "off"}>{state}</Badge> },
        {
          head: "Project",
          cell: ({ project_id }) => <ProjectName id={project_id} name={projects(project_id)} />,
        },
        { head: "Role", cell: ({ role }) => role },
        {
          head: "By",
          cell: ({ approved_by, at_its_end, made_by }) =>
            at_its_end
              ? "its end"
              : made_by === null
              ? "the directory"
              : `${names(made_by)}${approved_by.length === 0 ? "" : `, signed by ${named(approved_by, names)}`}`,
        },
        {
          head: "Delivered",
          cell: ({ delivery }) => (
            <StateBadge of={delivery.state} states={delivered} at={delivery.last_attempt_at ?? delivery.queued_at} />
          ),
        },
        {
          head: "Acknowledged",
          cell: ({ acknowledgement }) => (
            <StateBadge of={acknowledgement.state} states={acknowledged} at={acknowledgement.acknowledged_at} />
          ),
        },
      ]}
    />
  </section>
)

const Ends = ({ names, of }: { readonly of: Explanation["ends"]; readonly names: Name }): JSX.Element | null =>
  of.length === 0 ? null : (
    <section aria-labelledby="ends">
      <h2 id="ends">Its end</h2>
      <Table
        caption="Times that its end was set, newest first"
        rows={of}
        keyOf={({ set_at }) => set_at}
        empty="It has no end."
        columns={[
          {
            head: "Ends",
            cell: ({ access_version, ends_at }) => (
              <>
                <When at={ends_at} exact never="no end any more" />
                {access_version === null ? null : <div class="note">version {access_version} alone</div>}
              </>
            ),
          },
          { head: "Set", cell: ({ set_at }) => <When at={set_at} /> },
          {
            head: "By",
            cell: ({ approved_by, made_by, reason }) => (
              <>
                {names(made_by)}
                {approved_by.length === 0 ? "" : `, signed by ${named(approved_by, names)}`}
                <div class="note">“{reason}”</div>
              </>
            ),
          },
        ]}
      />
    </section>
  )

const Reviews = ({ names, of }: { readonly of: Explanation["reviews"]; readonly names: Name }): JSX.Element => (
  <section aria-labelledby="reviews">
    <h2 id="reviews">Reviews</h2>
    <Table
      caption="Reviews of the Access, newest first"
      rows={of}
      keyOf={({ review_id }) => review_id}
      empty="No review was proposed yet."
      columns={[
        { head: "Version", cell: ({ access_version }) => access_version },
        { head: "State", cell: ({ state }) => <StateBadge of={state} states={decided} /> },
        {
          head: "Proposed",
          cell: ({ proposed_at, proposed_by, sponsor_reason }) => (
            <>
              {names(proposed_by)}, <When at={proposed_at} />
              <div class="note">“{sponsor_reason}”</div>
            </>
          ),
        },
        {
          head: "Approved",
          cell: ({ approved_at, approved_by, independent_of }) =>
            approved_by === null ? "not yet" : (
              <>
                {names(approved_by)}, <When at={approved_at} />
                <div class="note">independent of {named(independent_of, names)}</div>
              </>
            ),
        },
        {
          head: "Ends",
          cell: ({ expires_at, revoked_at, revoked_by }) =>
            revoked_by === null ? <When at={expires_at} /> : (
              <>
                revoked by {names(revoked_by)}, <When at={revoked_at} />
              </>
            ),
        },
      ]}
    />
  </section>
)

const Confirmations = (
  { names, of }: { readonly of: Explanation["confirmations"]; readonly names: Name },
): JSX.Element | null =>
  of.length === 0 ? null : (
    <section aria-labelledby="confirmations">
      <h2 id="confirmations">Confirmations</h2>
      <Table
        caption="Times that a person confirmed the Access, newest first"
        rows={of}
        keyOf={({ confirmed_at, person_id }) => `${confirmed_at} ${person_id}`}
        empty="Nobody confirmed it yet."
        columns={[
          { head: "Version", cell: ({ access_version }) => access_version },
          { head: "Confirmed", cell: ({ confirmed_at }) => <When at={confirmed_at} /> },
          {
            head: "By",
            cell: ({ person_id, reason }) => (
              <>
                {names(person_id)}
                <div class="note">“{reason}”</div>
              </>
            ),
          },
        ]}
      />
    </section>
  )

const AccessExplanation = ({ params }: { readonly params: Params }): JSX.Element => {
  const institution_id = params["institution_id"]!
  const access_id = params["access_id"]!
  const explanation = useResource(
    `explanation ${institution_id} ${access_id}`,
    (signal) => ask("explainAccess", { params: { institution_id, access_id } }, { signal }),
  )
  const found = explanation.value.value
  const projects = useProjectNames(institution_id, (found?.versions ?? []).map(({ project_id }) => project_id))
  const names = useNames(found === undefined ? [] : peopleOf(found))
  return (
    <Page
      title={found === undefined ? "Access" : `Access of ${names(found.person_id)}`}
      up={[`/console/institutions/${institution_id}`, "Institution"]}
      actions={found === undefined ? undefined : (
        <>
          {found.effective.blocked_by.includes("access_revoked") || !rolesIn(institution_id).has("administrator")
            ? null
            : <ShortenAccess of={found} done={explanation.reload} />}
          {auditing.value || rolesIn(institution_id).size > 0
            ? (
              <EvidenceDownload
                asked={{ institution_id, person_id: found.person_id }}
                label="Download the person's evidence"
                name={`evidence-${found.person_id}`}
              />
            )
            : null}
          <CopyButton text={JSON.stringify(found, null, 2)} label="Copy as JSON" />
        </>
      )}
    >
      <Failure of={explanation.failure} retry={explanation.reload} />
      {found === undefined ? null : (
        <>
          <InEffect of={found.effective} />
          {found.ends_at === null ? null : (
            <p>
              It ends <When at={found.ends_at} exact />.
            </p>
          )}
          <Asked of={found.request} names={names} />
          <Ends of={found.ends} names={names} />
          <Versions of={found.versions} names={names} projects={projects} />
          <Reviews of={found.reviews} names={names} />
          <Confirmations of={found.confirmations} names={names} />
        </>
      )}
    </Page>
  )
}
export default AccessExplanation
