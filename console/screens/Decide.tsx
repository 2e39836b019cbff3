/** To decide: the requests that wait for a signature of the visitor, and the Access that campaigns ask the visitor about. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { setQuery } from "../Location.ts"
import { Failure } from "../parts/Failure.tsx"
import { SelectField } from "../parts/Form.tsx"
import { OwnCampaignItems } from "../parts/OwnCampaignItems.tsx"
import { Page } from "../parts/Page.tsx"
import { PolicyReviews } from "../parts/PolicyReviews.tsx"
import { filterOf, pageAfter } from "../parts/TextFilter.tsx"
import { useResource } from "../Resource.ts"
import { session } from "../Visitor.ts"

type OwnInstitution = AnswerOf<"consoleSession">["institutions"][number]

/** The access reviews of an institution that wait for the visitor: they are decided on a page of their own. */
const WaitingReviews = (
  { of: { institution_id, name, roles } }: { readonly of: OwnInstitution },
): JSX.Element | null => {
  const reviews = useResource(
    `access reviews ${institution_id}`,
    (signal) => ask("listAccessGrantReviews", { params: { institution_id } }, { signal }),
  )
  const found = reviews.value.value
  if (found === undefined) return <Failure of={reviews.failure} retry={reviews.reload} />
  const me = session.value?.person?.person_id
  const waiting =
    found.reviews.filter(({ sponsor_decision, state, validity }) =>
      state === "proposed" && validity.current && sponsor_decision.person_id !== me
    ).length
  const unreviewed = found.candidates.filter(({ proposable }) => proposable).length
  const lines = [
    roles.includes("administrator") && waiting > 0
      ? waiting === 1
        ? "1 review waits for an administrator's approval."
        : `${waiting} reviews wait for an administrator's approval.`
      : null,
    roles.includes("sponsor") && unreviewed > 0
      ? unreviewed === 1 ? "1 Access has no review yet." : `${unreviewed} Access have no review yet.`
      : null,
  ].filter((line) => line !== null)
  if (lines.length === 0) return null
  return (
    <section class="card" aria-labelledby={`reviews-${institution_id}`}>
      <h2 id={`reviews-${institution_id}`}>Access reviews of {name ?? institution_id}</h2>
      {lines.map((line) => <p key={line}>{line}</p>)}
      <p>
        <a href={`/console/reviews?institution=${encodeURIComponent(institution_id)}`}>Look at the access reviews</a>
      </p>
    </section>
  )
}

/** Leads a person who also owns projects to them: this page is their first one. */
const OwnProjects = (): JSX.Element | null => {
  const { projects } = session.value!
  return projects.length === 0 ? null : (
    <section class="card" aria-labelledby="own-projects">
      <h2 id="own-projects">Projects that you own</h2>
      <ul>
        {projects.map(({ name, project_id }) => (
          <li key={project_id}>
            <a href={`/console/projects/${encodeURIComponent(project_id)}`}>{name ?? project_id}</a>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The requests that the visitor signed and that lack another signature; nothing beside a list of decided ones. */
const useSigned = (asked: boolean) =>
  useResource(
    `policy reviews signed ${asked}`,
    (signal): Promise<Pick<AnswerOf<"listPolicyReviews">, "items">> =>
      asked
        ? ask("listPolicyReviews", { query: { state: "signed_by_me", limit: String(pageSize) } }, { signal })
        : Promise.resolve({ items: [] }),
  )

const Signed = ({ done, of }: {
  readonly of: ReturnType<typeof useSigned>
  readonly done: () => unknown
}): JSX.Element => {
  const found = of.value.value?.items ?? []
  return (
    <>
      <Failure of={of.failure} retry={of.reload} />
      <PolicyReviews done={done} of={found} />
      {found.length === pageSize
        ? (
          <p>
            <a href="/console/decide?state=decided_by_me">All that you decided</a>
          </p>
        )
        : null}
    </>
  )
}

const Nothing = ({ state }: { readonly state: string }): JSX.Element => (
  <div class="empty">
    {state === "open"
      ? (
        <>
          No request waits for your signature. What you asked for yourself is in{" "}
          <a href="/console/requests">your requests</a>.
        </>
      )
      : "There is nothing here."}
  </div>
)

const pageSize = 20

const Decide = (): JSX.Element => {
  const state = filterOf("state") ?? "open"
  const after_id = filterOf("after")
  const reviews = useResource(
    `policy reviews ${state} ${after_id}`,
    (signal) => ask("listPolicyReviews", { query: { state, after_id, limit: String(pageSize) } }, { signal }),
  )
  const found = reviews.value.value?.items
  const signed = useSigned(state === "open")
  const done = () => Promise.all([reviews.reload(), signed.reload()])
  return (
    <Page title="To decide">
      <div class="filters">
        <SelectField
          label="Show"
          value={state}
          onChange={(chosen) => setQuery({ state: chosen === "open" ? undefined : chosen, after: undefined })}
          options={[
            ["open", "What waits"],
            ["decided_by_me", "What you decided"],
            ["applied", "What was carried out"],
            ["declined", "What was declined"],
            ["superseded", "What was superseded"],
          ]}
        />
      </div>
      <Failure of={reviews.failure} retry={reviews.reload} />
      {found?.length === 0 ? <Nothing state={state} /> : <PolicyReviews done={done} of={found ?? []} />}
      {found?.length === pageSize
        ? (
          <p>
            <a href={pageAfter(found.at(-1)!.review_id)}>More</a>
          </p>
        )
        : null}
      <Signed done={done} of={signed} />
      {state === "open" ? <OwnCampaignItems /> : null}
      {state !== "open" ? null : session.value!.institutions
        .filter(({ roles }) => roles.some((role) => role !== "member"))
        .map((one) => <WaitingReviews key={one.institution_id} of={one} />)}
      {state === "open" ? <OwnProjects /> : null}
    </Page>
  )
}
export default Decide
