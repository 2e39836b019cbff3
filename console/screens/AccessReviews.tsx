/**
 * Access reviews of an institution: per review its four facts, kept apart (decided, delivered, acknowledged, in effect),
 * whether it still counts, and the Access that could be proposed.
 */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { setQuery } from "../Location.ts"
import { useNames } from "../Names.ts"
import { DialogButton } from "../parts/Dialog.tsx"
import { DownloadButton } from "../parts/DownloadButton.tsx"
import { ExportButton, exportSize } from "../parts/ExportButton.tsx"
import { Failure } from "../parts/Failure.tsx"
import { SelectField } from "../parts/Form.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
import { ReasonForm } from "../parts/ReasonForm.tsx"
import { ReviewTable } from "../parts/ReviewTable.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { ProjectName } from "../parts/ProjectName.tsx"
import { useProjectNames } from "../ProjectNames.ts"
import { useResource } from "../Resource.ts"
import { auditing, session } from "../Visitor.ts"

/** Where the pages of the two lists stand in the address. */
const reviewsAfter = "reviews"
const candidatesAfter = "candidates"

type List = AnswerOf<"listAccessGrantReviews">
type Candidate = List["candidates"][number]
type Name = (id: string) => string

interface Opened {
  readonly close: () => void
  readonly done: () => unknown
}

const ProposeForm = ({ candidate, close, done, institution, names }: Opened & {
  readonly institution: string
  readonly candidate: Candidate
  readonly names: Name
}): JSX.Element => {
  const { access_id, access_version } = candidate
  return (
    <ReasonForm
      name={`propose ${access_id} ${access_version}`}
      close={close}
      done={done}
      submit="Propose the review"
      said="The review is proposed. An administrator decides."
      write={(reason, key) =>
        ask("proposeAccessGrantReview", {
          params: { institution_id: institution },
          payload: { access_id, access_version, grant_event_id: candidate.grant_event_id, reason },
        }, { key })}
    >
      <p>
        You vouch that {names(candidate.person_id)} needs the role {candidate.role}, version {access_version}.
      </p>
    </ReasonForm>
  )
}

interface Listed {
  readonly list: List
  readonly names: Name
  readonly projects: Name
  readonly done: () => unknown
}

/** Why the visitor cannot propose a review, in words. */
const blockedBy = (code: string): string =>
  code === "role_required" ? "a Sponsor proposes it" : code.replaceAll("_", " ")

const CandidateTable = ({ done, list, names, projects }: Listed): JSX.Element => (
  <Table
    caption="Access that no review covers"
    rows={list.candidates}
    keyOf={({ access_id }) => access_id}
    empty={emptyPage(candidatesAfter, "Every active Access has a review.")}
    columns={[
      { head: "Person", cell: ({ person_id }) => names(person_id) },
      { head: "Role", cell: ({ role }) => role },
      { head: "Version", cell: ({ access_version }) => access_version },
      { head: "Granted", cell: ({ granted_at }) => <When at={granted_at} /> },
      {
        head: "Project",
        cell: ({ project_id }) => <ProjectName id={project_id} name={projects(project_id)} />,
      },
      {
        head: "Review",
        cell: (candidate) =>
          candidate.proposable
            ? (
              <DialogButton
                name={`propose ${candidate.access_id}`}
                label="Propose…"
                title="Propose a review of this Access"
              >
                {(close) => (
                  <ProposeForm
                    candidate={candidate}
                    close={close}
                    done={done}
                    institution={list.institution_id}
                    names={names}
                  />
                )}
              </DialogButton>
            )
            : <span class="note">{candidate.blocked_by.map(blockedBy).join(", ")}</span>,
      },
    ]}
  />
)

const peopleOf = ({ candidates, reviews }: List): ReadonlyArray<string> => [
  ...reviews.flatMap(({ person_id, sponsor_decision }) => [person_id, sponsor_decision.person_id]),
  ...candidates.map(({ person_id }) => person_id),
]

const projectsOf = ({ candidates, reviews }: List): ReadonlyArray<string> =>
  [...reviews, ...candidates].map(({ project_id }) => project_id)

/** All reviews of an institution, as evidence. */
const exported = (institution_id: string) => () => async (after_id: string | undefined, signal: AbortSignal) => {
  const query = { limit: String(exportSize), ...(after_id === undefined ? {} : { after_id }) }
  const { reviews } = await ask("listAccessGrantReviews", { params: { institution_id }, query }, { signal })
  return { items: reviews, next_after_id: reviews.length < exportSize ? null : reviews.at(-1)!.review_id }
}

/** An auditor comes by an institution's page, which names it. */
const AccessReviews = (): JSX.Element =>
  auditing.value && filterOf("institution") === undefined
    ? (
      <Page title="Access reviews">
        <p>
          <a href="/console/institutions">Choose an institution</a>, and go on to the reviews of its Access.
        </p>
      </Page>
    )
    : <Reviews />

const Reviews = (): JSX.Element => {
  const deciding = session.value!.institutions.filter(({ roles }) => roles.some((role) => role !== "member"))
  const institution_id = filterOf("institution") ?? deciding[0]?.institution_id ?? ""
  const [after, afterAccess] = [filterOf(reviewsAfter), filterOf(candidatesAfter)]
  const reviews = useResource(
    `access reviews ${institution_id} ${after} ${afterAccess}`,
    (signal) =>
      ask("listAccessGrantReviews", {
        params: { institution_id },
        query: {
          limit: String(pageSize),
          ...(after === undefined ? {} : { after_id: after }),
          ...(afterAccess === undefined ? {} : { after_access_id: afterAccess }),
        },
      }, { signal }),
  )
  const list = reviews.value.value
  const projects = useProjectNames(institution_id, list === undefined ? [] : projectsOf(list))
  const names = useNames(list === undefined ? [] : peopleOf(list))
  return (
    <Page
      title="Access reviews"
      actions={list === undefined
        ? undefined
        : <DownloadButton items={list.reviews} label="Download the evidence" name="access-reviews" />}
    >
      {deciding.length < 2 ? null : (
        <div class="filters">
          <SelectField
            label="Institution"
            value={institution_id}
            onChange={(institution) =>
              setQuery({ institution, [reviewsAfter]: undefined, [candidatesAfter]: undefined })}
            options={deciding.map(({ institution_id, name }) => [institution_id, name ?? institution_id] as const)}
          />
        </div>
      )}
      <Failure of={reviews.failure} retry={reviews.reload} />
      {list === undefined ? null : (
        <>
          <ReviewTable
            done={reviews.reload}
            empty={emptyPage(reviewsAfter, "No Access was reviewed yet.")}
            names={names}
            projects={projects}
            reviews={list.reviews}
          />
          <NextPage last={lastOf(list.reviews, ({ review_id }) => review_id)} name={reviewsAfter} words="reviews" />
          <div class="actions">
            <ExportButton begin={exported(institution_id)} label="Download all as CSV" name="all-access-reviews" />
          </div>
          <section aria-labelledby="candidates">
            <h2 id="candidates">Access without a review</h2>
            <CandidateTable done={reviews.reload} list={list} names={names} projects={projects} />
            <NextPage
              last={lastOf(list.candidates, ({ access_id }) => access_id)}
              name={candidatesAfter}
              words="Access without a review"
            />
          </section>
          <p class="note">
            As of <When at={list.as_of} exact />
          </p>
        </>
      )}
    </Page>
  )
}
export default AccessReviews
