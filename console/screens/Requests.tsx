/** The visitor's own requests, and links of their identity that another person asks for. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useNames } from "../Names.ts"
import { AskAccess, AskAgain } from "../parts/AskAccess.tsx"
import { AskOrganization } from "../parts/AskOrganization.tsx"
import { announce } from "../parts/Announce.tsx"
import { Badge, type Tone } from "../parts/Badge.tsx"
import { CopyButton } from "../parts/Copy.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Do } from "../parts/Form.tsx"
import { InvitationMail } from "../parts/InvitationMail.tsx"
import { Page } from "../parts/Page.tsx"
import { ReasonDialog } from "../parts/ReasonDialog.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf, pageAfter } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { useResource } from "../Resource.ts"
import { session } from "../Visitor.ts"

type Request = AnswerOf<"listOwnRequests">["items"][number]

const kinds: Readonly<Record<Request["kind"], string>> = {
  organization: "A new institution",
  website: "A website",
  access: "Access to a project",
  enrollment: "An invitation",
  launch: "A launch",
  link: "Two identities become one",
  membership: "A change of membership",
  authenticator_reset: "All authenticators of a person are removed",
  access_revocation: "An Access is revoked",
}

const states: Readonly<Record<Request["state"], string>> = {
  submitted: "waits for its review",
  held: "waits for its review",
  proposed: "waits for its review",
  pending_review: "waits for its review",
  approved: "approved",
  declined: "declined",
  superseded: "superseded",
  expired: "expired",
  revoked: "revoked",
  invited: "invited",
  accepted: "accepted",
  launched: "launched",
  linked: "linked",
}

const good = new Set<Request["state"]>(["approved", "accepted", "launched", "linked"])
const over = new Set<Request["state"]>(["declined", "superseded", "expired", "revoked"])
const toneOf = (state: Request["state"]): Tone => good.has(state) ? "good" : over.has(state) ? "off" : "wait"

/** The name of a project that the visitor owns. */
const ownProject = (id: string): string | null =>
  session.value?.projects.find(({ project_id }) => project_id === id)?.name ?? null

/** The subject of a request, and its recipient. */
const What = ({ names, of }: { readonly of: Request; readonly names: (id: string) => string }): JSX.Element => {
  const { kind, membership, name, project_id, recipient } = of
  const about = project_id !== null
    ? <a href={`/console/projects/${encodeURIComponent(project_id)}`}>{name ?? ownProject(project_id) ?? project_id}</a>
    : membership !== null
    ? `${names(membership.person_id)}: ${membership.role}, ${membership.state}`
    : name ?? recipient
  return (
    <>
      {kinds[kind]}
      {about === null ? null : <div class="note">{about}</div>}
    </>
  )
}

/** Where the page is of what an approved request made; null where it made nothing, or the page is linked already. */
const madeBy = ({ institution_id, kind, result_id }: Request): readonly [href: string, words: string] | null => {
  if (result_id === null) return null
  switch (kind) {
    case "organization":
      return [`/console/institutions/${encodeURIComponent(result_id)}`, "the institution"]
    case "membership":
    case "enrollment":
      return institution_id === null
        ? null
        : [`/console/institutions/${encodeURIComponent(institution_id)}`, "the institution"]
    default:
      return null
  }
}

/** The outcome of a request: its page, its client, its mail. */
const Result = ({ of }: { readonly of: Request }): JSX.Element => {
  const made = madeBy(of)
  const { client_id, delivery } = of
  if (made === null && client_id === null && delivery === null) return <span class="note">nothing yet</span>
  return (
    <>
      {made === null ? null : <a href={made[0]}>{made[1]}</a>}
      {client_id === null ? null : (
        <div>
          <span class="note">client</span> <code>{client_id}</code> <CopyButton text={client_id} label="Copy id" />
        </div>
      )}
      {delivery === null ? null : (
        <div>
          <span class="note">mail</span> <InvitationMail of={delivery.state} />
        </div>
      )}
    </>
  )
}

/** The roles whose holders have to decide, or the condition that holds the request. */
const WaitsFor = ({ of }: { readonly of: Request }): JSX.Element => {
  if (of.held_reason !== null) return <>{of.held_reason.replaceAll("_", " ")}</>
  if (of.policy_review !== null && toneOf(of.state) === "wait") {
    return <>{of.policy_review.required_roles.join(", then ")}</>
  }
  if (of.effective_at !== null && toneOf(of.state) === "wait") {
    return (
      <>
        takes effect <When at={of.effective_at} />
      </>
    )
  }
  return <span class="note">nothing</span>
}

/** Whether its author may withdraw a request; a launch that is `held` is approved. */
const isOpen = (of: Request): boolean => toneOf(of.state) === "wait" && !(of.kind === "launch" && of.state === "held")

/** Whether a request for Access has ended without it, and may be made once more. */
const mayAskAgain = ({ institution_id, kind, project_id, state }: Request): boolean =>
  kind === "access" && over.has(state) && institution_id !== null && project_id !== null

/** The effects of a withdrawal besides the end of the request. */
const consequence = ({ kind }: Request): string =>
  kind === "website"
    ? "Its project is withdrawn with it; the website has to be registered again."
    : kind === "enrollment"
    ? "The link in the mail stops working."
    : "Nobody can approve it any more. You may ask again."

const Withdraw = ({ done, names, of }: {
  readonly of: Request
  readonly names: (id: string) => string
  readonly done: () => unknown
}): JSX.Element => (
  <ReasonDialog
    name={`withdraw ${of.id}`}
    label="Withdraw…"
    title="Withdraw your request"
    submit="Withdraw it"
    kind="stop"
    said="The request is withdrawn."
    write={(reason, key) => ask("withdrawRequest", { params: { request_id: of.id }, payload: { reason } }, { key })}
    done={done}
  >
    <div>
      <What names={names} of={of} />
    </div>
    <p>{consequence(of)}</p>
  </ReasonDialog>
)

/** Whether another person asks to link an identity of the visitor. */
const isForeignLink = ({ author_person_id, kind }: Request): boolean =>
  kind === "link" && author_person_id !== session.value?.person?.person_id

const pageSize = 50

const Requests = (): JSX.Element => {
  const after_id = filterOf("after")
  const requests = useResource(
    `own requests ${after_id}`,
    (signal) => ask("listOwnRequests", { query: { after_id, limit: String(pageSize) } }, { signal }),
  )
  const action = useAction()
  const object = async (link_request_id: string) => {
    const asked = { params: { link_request_id }, payload: {} }
    if (!await action.run((key) => ask("objectToLinkRequest", asked, { key }))) return
    announce("The link is refused: the two identities stay apart.")
    await requests.reload()
  }
  const found = requests.value.value?.items
  const names = useNames(found?.flatMap(({ membership }) => membership?.person_id ?? []) ?? [])
  return (
    <Page
      title="My requests"
      actions={
        <>
          <AskAccess done={requests.reload} />
          <AskOrganization done={requests.reload} />
        </>
      }
    >
      <Failure of={requests.failure} retry={requests.reload} />
      <Failure of={action.failure} />
      {found === undefined ? null : (
        <Table
          caption="Requests, newest first"
          rows={found}
          keyOf={({ id }) => id}
          empty={
            <>
              You have asked for nothing yet. Access and a new institution are asked for by the buttons above;
              invitations, websites and changes of roles are asked for on the page of{" "}
              <a href="/console/institutions">an institution</a>, launches on that of a project.
            </>
          }
          columns={[
            { head: "Request", cell: (one) => <What of={one} names={names} /> },
            {
              head: "State",
              cell: (one) => <Badge tone={toneOf(one.state)}>{one.withdrawn ? "withdrawn" : states[one.state]}</Badge>,
            },
            { head: "Asked", cell: ({ created_at }) => <When at={created_at} /> },
            { head: "Reason", cell: ({ reason }) => reason },
            { head: "Waits for", cell: (one) => <WaitsFor of={one} /> },
            { head: "Result", cell: (one) => <Result of={one} /> },
            { head: "Expires", cell: ({ expires_at }) => <When at={expires_at} /> },
            {
              head: "Yours to do",
              cell: (one) =>
                mayAskAgain(one)
                  ? (
                    <AskAgain
                      done={requests.reload}
                      institution={one.institution_id!}
                      project={one.project_id!}
                      request={one.id}
                    />
                  )
                  : !isOpen(one)
                  ? <span class="note">nothing</span>
                  : isForeignLink(one)
                  ? <Do action={action} kind="stop" onDo={() => object(one.id)}>Refuse this link</Do>
                  : <Withdraw done={requests.reload} names={names} of={one} />,
            },
          ]}
        />
      )}
      {found?.length === pageSize
        ? (
          <p>
            <a href={pageAfter(found.at(-1)!.id)}>Older requests</a>
          </p>
        )
        : null}
    </Page>
  )
}
export default Requests
