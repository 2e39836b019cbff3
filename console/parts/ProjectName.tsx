/** A project by its name, which leads to its page where the visitor may see it: an auditor sees no projects. */
import type { JSX } from "preact"
import { auditing } from "../Visitor.ts"

export const ProjectName = ({ id, name }: { readonly id: string; readonly name: string }): JSX.Element =>
  auditing.value ? <>{name}</> : <a href={`/console/projects/${id}`}>{name}</a>
