/** The visitor's own actions and attempts: the audit of one person. */
import { OwnAudit } from "./Audit.tsx"

export default OwnAudit
