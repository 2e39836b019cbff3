/** Names of the institutions and projects that a page is about, where the visitor may read them. */
import { ask, Refused } from "./contract/Ask.ts"
import { useResource } from "./Resource.ts"
import { session } from "./Visitor.ts"

interface Subject {
  readonly institution_id: string | null
  readonly project_id: string | null
}

export interface SubjectNames {
  readonly institution: (id: string) => string
  readonly project: (id: string) => string
}

/** The name, or null where the API refuses to tell it. */
const nameOrNull = async (asked: Promise<{ readonly name: string }>): Promise<string | null> => {
  try {
    return (await asked).name
  } catch (cause) {
    if (cause instanceof Refused) return null
    throw cause
  }
}

const distinct = (ids: ReadonlyArray<string | null>) => [...new Set(ids.filter((id) => id !== null))].sort()

/** Gives the name of each institution and project of these subjects; the id where the name is not the visitor's to know. */
export const useSubjectNames = (subjects: ReadonlyArray<Subject>): SubjectNames => {
  const own = new Map(session.value?.institutions.map(({ institution_id, name }) => [institution_id, name]))
  const institutions = distinct(subjects.map(({ institution_id }) => institution_id)).filter((id) => !own.has(id))
  const projects = distinct(subjects.map(({ project_id }) => project_id))
  const names = useResource(
    `names of ${institutions} and ${projects}`,
    async (signal) =>
      new Map(
        await Promise.all([
          ...institutions.map(async (institution_id) =>
            [
              institution_id,
              await nameOrNull(ask("getInstitution", { params: { institution_id } }, { signal })),
            ] as const
          ),
          ...projects.map(async (project_id) =>
            [project_id, await nameOrNull(ask("getProject", { params: { project_id } }, { signal }))] as const
          ),
        ]),
      ),
  )
  const known = names.value.value
  return {
    institution: (id) => own.get(id) ?? known?.get(id) ?? id,
    project: (id) => known?.get(id) ?? id,
  }
}
