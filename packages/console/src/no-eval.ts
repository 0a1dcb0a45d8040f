import { config } from 'zod'

// The content security policy forbids `new Function`, with which zod would compile schemas. The first import of each
// entry, because zod tries it when a schema is created.
config({ jitless: true })
