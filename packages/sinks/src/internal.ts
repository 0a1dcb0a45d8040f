/** Exports for packages of this repository. They can change in any version. */
export { AddressGuard, allowProblem, notAllowed } from './addresses.ts'
export { type Dsn, parseDsn } from './dsn.ts'
export { HttpClient, type HttpResponse, isSuccess } from './http.ts'
export { Problems } from './options.ts'
export { SentryLimits } from './sentry-limits.ts'
