/** Rollouts that are held or have failed: holding, failing and releasing one. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { here } from "../Location.ts"
import { AuditLink } from "../parts/AuditLink.tsx"
import { Badge } from "../parts/Badge.tsx"
import { CopyCommand } from "../parts/CopyCommand.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { CheckField, TextField } from "../parts/Form.tsx"
import { Page } from "../parts/Page.tsx"
import { ProjectLink } from "../parts/ProjectLink.tsx"
import { ReasonForm } from "../parts/ReasonForm.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf, pageAfter } from "../parts/TextFilter.tsx"
import { useResource } from "../Resource.ts"

type Rollout = AnswerOf<"listRollouts">["items"][number]

interface Opened {
  readonly close: () => void
  readonly done: () => unknown
}

const decide = (project_id: string, action: "hold" | "fail" | "release") => (reason: string, key: string) =>
  ask("decideRollout", { params: { project_id }, payload: { action, reason } }, { key })

const failing =
  "Its client is disabled at the identity provider, its sessions end, and its waiting launches are closed."

const Hold = ({ close, done }: Opened): JSX.Element => {
  const draft = useDraft("hold what", { project: "", fail: false })
  const { fail, project } = draft.value.value
  return (
    <ReasonForm
      name="hold"
      close={close}
      done={done}
      submit={fail ? "Fail" : "Hold"}
      kind={fail ? "stop" : "main"}
      said={fail ? "The rollout has failed." : "The rollout is held."}
      ready={project.trim() !== ""}
      write={decide(project.trim(), fail ? "fail" : "hold")}
    >
      <p>Nothing new is activated in the project until its rollout is released. Revocations work as always.</p>
      <TextField
        label="Id of the project"
        name="project_id"
        value={project}
        onInput={(project) => draft.set({ project })}
      />
      <CheckField
        label={`The rollout has failed. ${failing}`}
        checked={fail}
        onChange={(fail) => draft.set({ fail })}
      />
    </ReasonForm>
  )
}

const Release = ({ done, of }: { readonly of: Rollout; readonly done: () => unknown }): JSX.Element => (
  <DialogButton name={`release ${of.project_id}`} label="Release…" title={`Release ${of.name}`}>
    {(close) => (
      <ReasonForm
        name={`release ${of.project_id}`}
        close={close}
        done={done}
        submit="Release"
        said="The rollout is released."
        write={decide(of.project_id, "release")}
      >
        <p>
          {of.rollout === "fail"
            ? "The project is registered again, and its next launch makes the client anew."
            : "The project goes on where it was held."}{" "}
          Sessions and rights that were ended meanwhile are not given back.
        </p>
      </ReasonForm>
    )}
  </DialogButton>
)

const Fail = ({ done, of }: { readonly of: Rollout; readonly done: () => unknown }): JSX.Element => (
  <DialogButton name={`fail ${of.project_id}`} label="Fail…" title={`Fail the rollout of ${of.name}`}>
    {(close) => (
      <ReasonForm
        name={`fail ${of.project_id}`}
        close={close}
        done={done}
        submit="Fail"
        kind="stop"
        said="The rollout has failed."
        write={decide(of.project_id, "fail")}
      >
        <p>{failing} A release gives none of that back.</p>
      </ReasonForm>
    )}
  </DialogButton>
)

const Rollouts = (): JSX.Element => {
  const rollouts = useResource(
    `rollouts ${here.value.search}`,
    (signal) => ask("listRollouts", { query: { after_id: filterOf("after") } }, { signal }),
  )
  const found = rollouts.value.value
  return (
    <Page
      title="Rollouts"
      actions={
        <DialogButton name="hold" label="Hold a rollout…" title="Hold the rollout of a project">
          {(close) => <Hold close={close} done={rollouts.reload} />}
        </DialogButton>
      }
    >
      <Failure of={rollouts.failure} retry={rollouts.reload} />
      {found === undefined ? null : (
        <Table
          caption="Projects whose rollout is held or has failed"
          rows={found.items}
          keyOf={({ project_id }) => project_id}
          empty="No rollout is held. Hold one by the button above where a launch goes wrong."
          columns={[
            {
              head: "Project",
              cell: ({ name, project_id }) => <ProjectLink id={project_id} name={name} />,
            },
            { head: "Institution", cell: ({ institution_id, institution_name }) => institution_name ?? institution_id },
            { head: "Environment", cell: ({ environment }) => environment },
            {
              head: "Rollout",
              cell: ({ rollout }) =>
                rollout === "fail" ? <Badge tone="bad">failed</Badge> : <Badge tone="warn">held</Badge>,
            },
            {
              head: "Why",
              cell: ({ project_id }) => <AuditLink id={`project:${project_id}`} />,
            },
            {
              head: "Decide",
              cell: (one) => (
                <div class="actions">
                  <Release of={one} done={rollouts.reload} />
                  {one.rollout === "fail" ? null : <Fail of={one} done={rollouts.reload} />}
                </div>
              ),
            },
          ]}
        />
      )}
      {found?.next_after_id == null ? null : (
        <p>
          <a href={pageAfter(found.next_after_id)}>More rollouts</a>
        </p>
      )}
      <CopyCommand command="rollout list" />
    </Page>
  )
}
export default Rollouts
