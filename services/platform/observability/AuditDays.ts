/**
 * The least number of days for which audit records are kept. Four eyes look back ninety days at who made and approved
 * whom, products may ask for ninety days of history, and older sign-ins are known from the audit alone.
 */
export const leastAuditDays = 90
