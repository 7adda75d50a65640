//! Starts the client.

import { mount } from 'svelte';

import { browserStorage, Keep } from './net/keep';
import './styles/tokens.css';
import './styles/base.css';
import App from './ui/App.svelte';

const target = document.getElementById('app');
if (!target) throw new Error('the page has no #app');

mount(App, { target, props: { keep: new Keep(browserStorage()) } });
