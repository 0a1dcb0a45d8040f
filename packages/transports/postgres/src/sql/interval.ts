/** Returns an SQL interval of a parameter in milliseconds. A longer one than an interval can hold becomes 300 years. */
export const interval = (parameter: string): string =>
  `least(${parameter}::double precision, 1e13) * interval '1 millisecond'`

/** Returns the same, or null for a parameter that is null. */
export const intervalOrNull = (parameter: string): string =>
  `case when ${parameter}::double precision is not null then ${interval(parameter)} end`
