/** Returns an SQL interval of a parameter in milliseconds. A longer one than an interval can hold becomes 300 years. */
export const interval = (parameter: string): string =>
  `least(${parameter}::double precision, 1e13) * interval '1 millisecond'`
