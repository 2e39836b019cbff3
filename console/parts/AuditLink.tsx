/** Leads an operator from an object to its records in the audit. */
import type { JSX } from "preact"

export const AuditLink = ({ id }: { readonly id: string }): JSX.Element => (
  <a href={`/console/operations/audit?subject=${encodeURIComponent(id)}`}>Its audit</a>
)
