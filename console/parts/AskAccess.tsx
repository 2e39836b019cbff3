/** The form that asks for Access to a project of an institution in which the visitor is a member. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useRef } from "preact/hooks"
import { type Action, useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { useResource } from "../Resource.ts"
import { DialogButton } from "./Dialog.tsx"
import { Failure } from "./Failure.tsx"
import { SelectField, TextField } from "./Form.tsx"
import { ReasonForm } from "./ReasonForm.tsx"
import { askingReasons } from "./ReasonTemplates.ts"

type Requestable = AnswerOf<"listRequestableProjects">["items"][number]

const most = 100

/** A choice among the projects, a page of them at a time. */
const ProjectField = ({ action, institution, onChange, value }: {
  readonly action: Action
  readonly institution: string
  readonly value: string
  readonly onChange: (projectId: string) => void
}): JSX.Element | null => {
  const after = useSignal<string | undefined>(undefined)
  const query = { limit: String(most), after_id: after.value }
  const page = useResource(
    `projects to ask for ${institution} ${after.value}`,
    (signal) => ask("listRequestableProjects", { params: { institution_id: institution }, query }, { signal }),
  )
  // Projects of earlier pages stay offered.
  const pages = useRef(new Map<string | undefined, ReadonlyArray<Requestable>>())
  const found = page.value.value?.items
  if (found !== undefined) pages.current.set(after.value, found)
  const projects = [...pages.current.values()].flat()
  if (found === undefined && projects.length === 0) return <Failure of={page.failure} retry={page.reload} />
  return (
    <>
      <Failure of={page.failure} retry={page.reload} />
      {projects.length === 0
        ? <p class="note">There is no project here to which you do not have, or wait for, Access.</p>
        : (
          <SelectField
            label="Project"
            value={value}
            options={[["", "Choose a project"], ...projects.map(({ name, project_id }) => [project_id, name] as const)]}
            onChange={onChange}
          />
        )}
      {found === undefined || found.length < most ? null : (
        <button
          type="button"
          disabled={action.busy.value}
          onClick={() => {
            after.value = found.at(-1)!.project_id
          }}
        >
          Offer more projects
        </button>
      )}
    </>
  )
}

/** A choice among the institutions of the visitor. */
const InstitutionField = ({ onChange, value }: {
  readonly value: string
  readonly onChange: (institutionId: string) => void
}): JSX.Element => {
  const own = useResource(
    "institutions to ask in",
    (signal) => ask("listInstitutions", { query: { limit: String(most) } }, { signal }),
  )
  const found = own.value.value?.items.filter(({ memberships }) => memberships.some(({ effective }) => effective))
  return (
    <>
      <Failure of={own.failure} retry={own.reload} />
      {found?.length === 0
        ? <p class="note">You are a member of no institution yet: Access is asked for within one.</p>
        : (
          <SelectField
            label="Institution"
            value={value}
            options={[
              ["", "Choose an institution"],
              ...(found ?? []).map(({ institution_id, name }) => [institution_id, name] as const),
            ]}
            onChange={onChange}
          />
        )}
    </>
  )
}

const AskForm = ({ close, done, institution, name, project }: {
  /** The name of the form's draft. */
  readonly name: string
  readonly close: () => void
  readonly done: () => unknown
  readonly institution: string | null
  readonly project: string | null
}): JSX.Element => {
  const action = useAction()
  const draft = useDraft(`${name} to`, { institution_id: institution ?? "", project_id: project ?? "", until: "" })
  const { institution_id, project_id, until } = draft.value.value
  return (
    <ReasonForm
      action={action}
      name={name}
      templates={askingReasons}
      close={close}
      done={done}
      ready={project_id !== ""}
      submit="Ask for Access"
      said="Access is asked for. A Sponsor and an administrator decide."
      write={(reason, key) => {
        const payload = { institution_id, project_id, reason }
        return until === ""
          ? ask("createAccessRequest", { payload }, { key })
          : ask("createTemporaryAccessRequest", { payload: { ...payload, ends_at: new Date(until).toISOString() } }, {
            key,
          })
      }}
    >
      {institution !== null ? null : (
        <InstitutionField
          value={institution_id}
          onChange={(institution_id) => draft.set({ institution_id, project_id: "" })}
        />
      )}
      {institution_id === "" ? null : (
        <ProjectField
          key={institution_id}
          action={action}
          institution={institution_id}
          value={project_id}
          onChange={(project_id) => draft.set({ project_id })}
        />
      )}
      <TextField
        action={action}
        label="Until"
        name="ends_at"
        type="datetime-local"
        required={false}
        hint="Empty: until somebody revokes it."
        value={until}
        onInput={(until) => draft.set({ until })}
      />
      <p class="note">A Sponsor and an administrator decide, each another person, within 14 days.</p>
    </ReasonForm>
  )
}

/** `institution`: null where the visitor is to choose it. */
export const AskAccess = ({ done, institution = null }: {
  readonly done: () => unknown
  readonly institution?: string | null
}): JSX.Element => (
  <DialogButton name="ask for access" label="Ask for Access…" title="Ask for Access to a project">
    {(close) => <AskForm close={close} done={done} institution={institution} name="ask for access" project={null} />}
  </DialogButton>
)

/** Asks once more for what a request that has ended asked for. */
export const AskAgain = ({ done, institution, project, request }: {
  readonly done: () => unknown
  readonly institution: string
  readonly project: string
  readonly request: string
}): JSX.Element => (
  <DialogButton name={`ask again ${request}`} label="Ask again…" title="Ask for Access to a project">
    {(close) => (
      <AskForm close={close} done={done} institution={institution} name={`ask again ${request}`} project={project} />
    )}
  </DialogButton>
)
