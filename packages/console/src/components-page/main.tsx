import '../no-eval.ts'
import '../styles/index.ts'
import { createRoot } from 'react-dom/client'
import { listenToKeys } from '../keys.ts'
import { ComponentsPage } from './page.tsx'

listenToKeys()
const root = document.getElementById('root')
if (root !== null) createRoot(root).render(<ComponentsPage />)
