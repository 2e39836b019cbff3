/** The owners of a project, and how an administrator changes them. */
import type { JSX } from "preact"
import { ask } from "../../contract/Ask.ts"
import { useDraft } from "../../Drafts.ts"
import { useNames } from "../../Names.ts"
import { Badge } from "../../parts/Badge.tsx"
import { DialogButton } from "../../parts/Dialog.tsx"
import { MemberField } from "../../parts/MemberField.tsx"
import type { Project } from "../../parts/ProjectState.tsx"
import { ReasonForm } from "../../parts/ReasonForm.tsx"
import { Table } from "../../parts/Table.tsx"
import { When } from "../../parts/When.tsx"

type Owner = NonNullable<Project["owners"]>[number]

/** A project, and what the visitor is to it. */
export interface OnProject {
  readonly of: Project
  readonly owner: boolean
  readonly administrator: boolean
  /** Asks for the project anew. */
  readonly done: () => unknown
}

interface Opened {
  readonly of: Project
  readonly close: () => void
  readonly done: () => unknown
}

const Add = ({ close, done, of, owners }: Opened & { readonly owners: ReadonlyArray<Owner> }): JSX.Element => {
  const { institution_id, project_id } = of
  const own = new Set(owners.filter(({ active }) => active).map(({ person_id }) => person_id))
  const draft = useDraft("owner chosen", { person_id: "" })
  const { person_id } = draft.value.value
  return (
    <ReasonForm
      name="owner"
      close={close}
      done={done}
      ready={person_id !== ""}
      submit="Make this person an owner"
      said="The person is an owner now."
      write={(reason, key) =>
        ask("changeProjectOwner", { params: { project_id }, payload: { person_id, active: true, reason } }, { key })}
    >
      <MemberField
        first={[["", "Choose a member"]]}
        institution={institution_id}
        label="Member of the institution"
        value={person_id}
        without={own}
        onChange={(person_id) => draft.set({ person_id })}
      />
    </ReasonForm>
  )
}

const Remove = ({ close, done, name, of, owner: { person_id } }: Opened & {
  readonly owner: Owner
  readonly name: string
}): JSX.Element => (
  <ReasonForm
    name={`no owner ${person_id}`}
    close={close}
    done={done}
    kind="stop"
    submit="Take ownership away"
    said="The person is no owner any more."
    write={(reason, key) =>
      ask("changeProjectOwner", {
        params: { project_id: of.project_id },
        payload: { person_id, active: false, reason },
      }, { key })}
  >
    <p>{name} decides nothing about the project as its owner from then on. It takes effect at once.</p>
  </ReasonForm>
)

export const Owners = ({ administrator, done, of, owners }: OnProject & {
  readonly owners: ReadonlyArray<Owner>
}): JSX.Element => {
  const names = useNames(owners.map(({ person_id }) => person_id))
  const changes = administrator && of.state !== "withdrawn"
  const active = owners.filter((one) => one.active).length
  return (
    <section aria-labelledby="owners">
      <div class="head">
        <h2 id="owners">Owners</h2>
        {!changes ? null : (
          <DialogButton name="owner" label="Add an owner…" title="Make a member an owner">
            {(close) => <Add close={close} done={done} of={of} owners={owners} />}
          </DialogButton>
        )}
      </div>
      <Table
        caption="Owners of the project"
        rows={owners}
        keyOf={({ person_id }) => person_id}
        empty="The project has no owner. An administrator of its institution names one."
        columns={[
          { head: "Person", cell: ({ person_id }) => names(person_id) },
          {
            head: "State",
            cell: (one) => (
              <Badge tone={one.active ? "good" : "off"}>{one.active ? "owner" : "no owner any more"}</Badge>
            ),
          },
          { head: "Since", cell: ({ since }) => <When at={since} never="not recorded" /> },
          ...(changes
            ? [{
              head: "Change",
              cell: (one: Owner) =>
                !one.active
                  ? <span class="note">nothing</span>
                  : active === 1
                  ? <span class="note">the last owner stays</span>
                  : (
                    <DialogButton
                      name={`no owner ${one.person_id}`}
                      label="Remove…"
                      title={`Take ownership from ${names(one.person_id)}`}
                    >
                      {(close) => <Remove close={close} done={done} name={names(one.person_id)} of={of} owner={one} />}
                    </DialogButton>
                  ),
            }]
            : []),
        ]}
      />
    </section>
  )
}
