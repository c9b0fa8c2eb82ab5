/* Rules for the site's scripts: what ESLint recommends, and no name that hides another or is never used. */
import js from "@eslint/js";
import globals from "globals";

export default [
    js.configs.recommended,
    {
        files: ["torch_history/site/templates/*.js"],
        languageOptions: {ecmaVersion: 2024, sourceType: "script", globals: globals.browser},
        rules: {"no-shadow": "error", "prefer-const": "error", "eqeqeq": "error", "no-var": "error", "no-implicit-globals": "error",
                "no-restricted-syntax": ["error", {selector: "TemplateLiteral TemplateLiteral",
                                                   message: "rjsmin drops spaces of a template within another one."}],
                "no-unused-vars": ["error", {ignoreRestSiblings: true}]},
    },
];
