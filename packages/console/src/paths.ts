/** Addresses of resources, below the path of the server. */
export const groupsPath = (): string => '/groups'
export const groupPath = (id: string): string => `/groups/${id}`
export const runPath = (id: string): string => `/replays/${id}`
export const messagePath = (id: string): string => `/messages/${id}`
