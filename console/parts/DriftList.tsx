/** Drift: clients at the provider, and events that products got, which differ from what was decided. */
import type { JSX } from "preact"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useOperatedProjects } from "../OperatedProjects.ts"
import { Badge } from "./Badge.tsx"

type Diagnostics = Pick<AnswerOf<"projectDiagnostics">, "client_drift" | "lifecycle_drift">

interface Difference {
  readonly project_id: string
  readonly words: string
}

const differences = ({ client_drift, lifecycle_drift }: Diagnostics): ReadonlyArray<Difference> => [
  ...client_drift.map(({ field, project_id }) => ({ project_id, words: `the client's ${field.replaceAll("_", " ")}` })),
  ...lifecycle_drift.map(({ key, project_id }) => ({ project_id, words: `what the product was told of ${key}` })),
]

/** `projects`: whether each line says, and leads to, its project. */
export const DriftList = ({ of, projects = false }: {
  readonly of: Diagnostics
  readonly projects?: boolean
}): JSX.Element => {
  const found = differences(of)
  const nameOf = useOperatedProjects(projects ? found.map(({ project_id }) => project_id) : [])
  return found.length === 0 ? <p class="note">Nothing differs from what was decided.</p> : (
    <ul>
      {found.map(({ project_id, words }) => (
        <li key={`${project_id} ${words}`}>
          <Badge tone="bad">differs</Badge> {words}
          {projects
            ? (
              <>
                , <a href={`/console/projects/${project_id}`}>{nameOf(project_id) ?? project_id}</a>
              </>
            )
            : null}
        </li>
      ))}
    </ul>
  )
}
