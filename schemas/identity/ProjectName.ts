/** Names of projects, for operators, whose jobs, consumers and records name projects by their ids. */
import { Schema } from "effect"
import { ProjectId } from "../BrandedIds.ts"

/** Up to 100 ids of projects, separated by commas. */
export const askedProjects = Schema.String.check(
  Schema.isPattern(/^[A-Za-z0-9_-]{1,128}(,[A-Za-z0-9_-]{1,128}){0,99}$/u),
)

export const ProjectName = Schema.Struct({ project_id: ProjectId, name: Schema.String })
  .annotate({ identifier: "ProjectName" })

export const ProjectNames = Schema.Struct({ items: Schema.Array(ProjectName) }).annotate({ identifier: "ProjectNames" })
export type ProjectNames = typeof ProjectNames.Type
