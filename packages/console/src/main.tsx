import './no-eval.ts'
import './styles/index.ts'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { queryClient } from './data/query-client.ts'
import { listenToKeys } from './keys.ts'
import { router } from './router.tsx'

listenToKeys()
const root = document.getElementById('root')
if (root === null) throw new Error('The page has no element "root".')
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
