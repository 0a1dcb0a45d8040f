/** Exports for packages of this repository. They can change in any version. */
export { PROBLEM_TYPE, problem } from './problem.ts'
export { fromQueryString, toQueryString } from './query-string.ts'
export { isMutation, type Route, ROUTES } from './routes.ts'
