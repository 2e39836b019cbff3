/** The launch proposals of a project, newest first, and the form of a new one. */
import type { JSX } from "preact"
import { useAction } from "../../Action.ts"
import { ask } from "../../contract/Ask.ts"
import type { AnswerOf } from "../../contract/EndpointTypes.ts"
import { useDraft } from "../../Drafts.ts"
import { useNames } from "../../Names.ts"
import { Badge, type Tone } from "../../parts/Badge.tsx"
import { DialogButton } from "../../parts/Dialog.tsx"
import { Failure } from "../../parts/Failure.tsx"
import { TextField } from "../../parts/Form.tsx"
import { emptyPage, lastOf, NextPage, pageSize } from "../../parts/NextPage.tsx"
import { heldReason, type Project } from "../../parts/ProjectState.tsx"
import { ReasonForm } from "../../parts/ReasonForm.tsx"
import { Table } from "../../parts/Table.tsx"
import { filterOf } from "../../parts/TextFilter.tsx"
import { When } from "../../parts/When.tsx"
import { useResource } from "../../Resource.ts"
import type { OnProject } from "./Owners.tsx"

type Launch = AnswerOf<"listLaunchProposals">["items"][number]

const tones: Readonly<Record<Launch["state"], Tone>> = {
  proposed: "wait",
  approved: "wait",
  launched: "good",
  held: "warn",
  declined: "bad",
  superseded: "off",
}

const Propose = ({ close, done, of }: {
  readonly of: Project
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const draft = useDraft("launch where", { launch_url: of.launch_url ?? of.website })
  const { launch_url } = draft.value.value
  return (
    <ReasonForm
      action={action}
      name="launch"
      close={close}
      done={done}
      ready={launch_url.trim() !== ""}
      submit="Propose the launch"
      said="The launch is proposed. An administrator decides."
      write={(reason, key) =>
        ask("proposeLaunch", {
          params: { project_id: of.project_id },
          payload: { launch_url: launch_url.trim(), reason },
        }, { key })}
    >
      <p>The proposal is bound to version {of.version} of the project. A newer proposal takes its place.</p>
      <TextField
        action={action}
        autofocus
        label="Launch URL"
        name="launch_url"
        type="url"
        hint="Its host is, or lies under, a verified domain of the institution."
        value={launch_url}
        onInput={(launch_url) => draft.set({ launch_url })}
      />
    </ReasonForm>
  )
}

/** Why no launch can be proposed now; null where it can. */
const refusal = ({ rollout, state }: Project): string | null =>
  state === "launched"
    ? "The project is launched already."
    : state === "withdrawn"
    ? "The project is withdrawn."
    : rollout !== null
    ? "An operator holds the rollout."
    : null

const LaunchTable = ({ of }: { readonly of: ReadonlyArray<Launch> }): JSX.Element => {
  const names = useNames(of.map(({ author_person_id }) => author_person_id))
  return (
    <Table
      caption="Launch proposals, newest first"
      rows={of}
      keyOf={({ launch_id }) => launch_id}
      empty={emptyPage("launches", "No launch was proposed yet. An owner proposes one.")}
      columns={[
        { head: "Launch URL", cell: ({ launch_url }) => launch_url },
        { head: "State", cell: ({ state }) => <Badge tone={tones[state]}>{state}</Badge> },
        {
          head: "Waits for",
          cell: ({ held_reason, policy_review, state }) =>
            held_reason !== null
              ? heldReason(held_reason)
              : state === "proposed" && policy_review !== null
              ? policy_review.required_roles.join(", then ")
              : <span class="note">nothing</span>,
        },
        {
          head: "Proposed",
          cell: ({ author_person_id, created_at }) => (
            <>
              by {names(author_person_id)} <When at={created_at} />
            </>
          ),
        },
        { head: "Reason", cell: ({ reason }) => reason },
        { head: "Project's version", cell: ({ project_version }) => project_version },
      ]}
    />
  )
}

export const Launches = ({ done, of, owner }: OnProject): JSX.Element => {
  const { project_id, version } = of
  const after_id = filterOf("launches")
  // A proposal raises the project's version, so the list is asked for anew.
  const launches = useResource(
    `launches ${project_id} ${version} ${after_id}`,
    (signal) =>
      ask("listLaunchProposals", { params: { project_id }, query: { after_id, limit: String(pageSize) } }, { signal }),
  )
  const found = launches.value.value?.items
  const reason = refusal(of)
  return (
    <section aria-labelledby="launches">
      <div class="head">
        <h2 id="launches">Launches</h2>
        {!owner
          ? null
          : reason !== null
          ? <span class="note">{reason}</span>
          : (
            <DialogButton name="launch" kind="main" label="Propose a launch…" title={`Propose to launch ${of.name}`}>
              {(close) => <Propose close={close} done={done} of={of} />}
            </DialogButton>
          )}
      </div>
      <Failure of={launches.failure} retry={launches.reload} />
      {found === undefined ? null : (
        <>
          <LaunchTable of={found} />
          <NextPage last={lastOf(found, ({ launch_id }) => launch_id)} name="launches" words="launches" />
        </>
      )}
    </section>
  )
}
